import Foundation
import GattherdHistory
import GattherdLog
import GattherdModel
import TestKit

/// A folder with a history that no daemon has open: one strap with one reading per second.
struct HistoryFolder {
    static let start = Timestamp(microseconds: 1_795_231_205_000_000)  // 2026-11-21T03:20:05Z
    let folder: TemporaryFolder
    var database: String { folder.file("gattherd.db") }

    /// Creates a history with one reading for each second.
    init(seconds: Int = 3600) async throws {
        folder = try TemporaryFolder()
        let clock = GatewayClock(now: { Self.start })
        let options = HistoryOptions(path: folder.file("gattherd.db"), consumers: [], clock: clock)
        let history = try await ReadingHistory.open(options, log: .silent)
        let strap = DeviceRecord(device: "strap", address: "C0:FF:EE:00:00:01")
        if seconds > 0 { try await history.record(strap, seenAt: Self.start) }
        try await history.append(Self.readings(seconds))
        try await history.close()
    }

    /// Returns heart rates that count the seconds of the minute, with RR intervals, two of them equal.
    private static func readings(_ seconds: Int) -> ReadingBatch {
        let stream = StreamDefinition(
            device: "strap",
            profile: "heart-rate",
            stream: "heart_rate",
            metrics: [
                MetricDescriptor(name: "heart_rate", unit: "bpm"),
                MetricDescriptor(name: "rr_interval", unit: "s", isRepeated: true),
            ]
        )
        var batch = ReadingBatch()
        for second in 0..<seconds {
            let values = [Sample(metric: 0, value: .integer(Int64(second % 60)))]
            let intervals = [0.8125, 0.8125].map { Sample(metric: 1, value: .real($0)) }
            let samples = batch.samples.count..<batch.samples.count + (second == 0 ? 3 : 1)
            batch.samples += second == 0 ? values + intervals : values
            let time = start.advanced(by: .seconds(second))
            batch.readings.append(Reading(stream: stream, time: time, source: .notify, samples: samples))
        }
        return batch
    }

    /// Runs `gattherd` on the database and returns its exit code, standard output and standard error.
    func gattherd(_ words: String...) async throws -> (code: Int32, output: String, complaints: String) {
        try await gattherd(words)
    }

    /// Runs `gattherd` on the database with a list of words.
    func gattherd(_ words: [String]) async throws -> (code: Int32, output: String, complaints: String) {
        let errors = folder.file("errors")
        let arguments = words + ["--database", database]
        let (code, output) = try await Programs.run(Programs.path("gattherd"), arguments, errors: errors)
        let complaints = try String(contentsOfFile: errors, encoding: .utf8)
        try FileManager.default.removeItem(atPath: errors)
        return (code, output, complaints.replacingOccurrences(of: folder.path + "/", with: ""))
    }
}
