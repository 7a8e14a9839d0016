import Foundation
import TestKit

/// The end of a killed daemon.
public struct CrashState: Sendable {
    /// The time in microseconds since 1970.
    public let time: Int
    /// The newest stored reading; 0 for none.
    public let seq: Int
    /// The number of stored readings.
    public let count: Int
}

extension DeliveryAudit {
    /// The times in which notifications may be lost: from the last commit before a crash until the device is ready
    /// again.
    ///
    /// All notifications arrive over one connection, so everything sent before the last stored one must be stored.
    public func outages(_ crashes: [CrashState], ready: [String: [Int]]) -> [String: [Gap]] {
        let times = sendingTimes.sorted { $0.key < $1.key }
        return ready.mapValues { ready in
            crashes.map { crash in
                let start = times.prefix { $0.key <= crash.seq }.map(\.value).max() ?? 0
                return start...max(start, ready.first { $0 > crash.time } ?? .max)
            }
        }
    }
}

extension Gateway {
    /// The state of the history right after the daemon has died.
    ///
    /// Reads a copy, so that the next daemon finds the files unchanged.
    public func crashState() async throws -> CrashState {
        let time = Int(Date().timeIntervalSince1970 * 1_000_000)
        let copy = try TemporaryFolder()
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: databasePath + suffix) {
            try FileManager.default.copyItem(atPath: databasePath + suffix, toPath: copy.file("copy" + suffix))
        }
        let sql = "SELECT coalesce(max(seq), 0), count(DISTINCT seq) FROM history"
        // A daemon that dies early leaves no file, or one without tables.
        let row = try? await SQLiteShell(copy.file("copy")).rows(sql).first?.compactMap { Int($0) }
        return CrashState(time: time, seq: row?.first ?? 0, count: row?.last ?? 0)
    }

    /// The number of stored readings up to `seq`.
    public func storedCount(through seq: Int) async throws -> Int {
        Int(try await database.value("SELECT count(DISTINCT seq) FROM history WHERE seq <= \(seq)")) ?? 0
    }

    /// The times when each device became ready, in microseconds since 1970.
    public func readyTimes() async throws -> [String: [Int]] {
        let sql = """
            SELECT device, ts FROM events WHERE kind = 'link' AND json_extract(detail, '$.to') = 'ready' ORDER BY ts
            """
        let rows = try await database.rows(sql)
        return Dictionary(grouping: rows) { $0[0] }.mapValues { $0.compactMap { Int($0[1]) } }
    }
}
