import CSQLite
public import GattherdModel
import Glibc

/// Shrinks a history's file as far as possible.
///
/// Without a daemon the file is rewritten. While a daemon runs, free pages are truncated, a few at a time so that no
/// commit waits for long.
public struct Compaction {
    /// The size of the database in bytes, before and after.
    public private(set) var before: Int64 = 0
    public private(set) var after: Int64 = 0
    /// True when a daemon kept the file in use.
    public let isOnline: Bool

    /// - Throws: ``StoreFault`` if the file is not ours, or the disk has no room for a second copy during the rewrite.
    public init(path: String) throws(StoreFault) {
        let path = DatabaseName.resolved(path)
        try FileContent.expectExistingHistory(path)
        let connection = try HistoryDatabase.openForMaintenance(path)
        let lock = try Self.lock(path)
        isOnline = lock == nil
        before = try Self.size(connection)
        if isOnline {
            try Self.cutOff(connection)
        } else {
            try HistoryDatabase.copying(connection) { () throws(StoreFault) in
                try connection.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
            }
        }
        Self.truncateWAL(connection)
        after = try Self.size(connection)
        withExtendedLifetime(lock) {}
    }

    private static func lock(_ path: String) throws(StoreFault) -> FileLock? {
        do throws(StoreFault) {
            return try FileLock(database: path)
        } catch {
            guard error.kind == .inUse else { throw error }
            return nil
        }
    }

    private static func size(_ connection: SQLiteConnection) throws(StoreFault) -> Int64 {
        try connection.integer("PRAGMA page_count") * connection.integer("PRAGMA page_size")
    }

    private static func cutOff(_ connection: SQLiteConnection) throws(StoreFault) {
        var left = try connection.integer("PRAGMA freelist_count")
        while left > 0 {
            let start = ContinuousClock.now
            try connection.execute("PRAGMA incremental_vacuum(256)")
            connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
            rest(atLeast: ContinuousClock.now - start)
            let next = try connection.integer("PRAGMA freelist_count")
            guard next < left else { return }
            left = next
        }
    }

    /// Sleeps, so that waiting processes get SQLite's unfair lock.
    private static func rest(atLeast time: Duration) {
        let nanoseconds = max(Duration.milliseconds(20), time) / .nanoseconds(1)
        var pause = timespec(tv_sec: 0, tv_nsec: Int(min(nanoseconds, 999_999_999)))
        unsafe nanosleep(&pause, nil)
    }

    /// Truncates the WAL, as an idle daemon does.
    private static func truncateWAL(_ connection: SQLiteConnection) {
        for _ in 0..<20 where !connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE) { rest(atLeast: .zero) }
    }
}
