import CSQLite
public import GattherdModel
import GattherdSync
import Glibc

/// Copies a snapshot of a history to another file.
struct Backup {
    private let connection: SQLiteConnection

    init(of connection: SQLiteConnection) {
        self.connection = connection
    }

    /// Writes the copy, which gets its name when it is complete and on the disk.
    func write(to path: String) throws(StoreFault) {
        guard unsafe access(path, F_OK) != 0 else {
            throw StoreFault("\(path): the file exists already; choose another name, or remove it")
        }
        let draft = path + ".part"
        do throws(StoreFault) {
            try copy(to: draft)
            try FileSync.file(draft)
        } catch {
            unsafe unlink(draft)
            throw error
        }
        guard unsafe rename(draft, path) == 0 else { throw StoreFault(errno: errno, "cannot rename", path: draft) }
        try FileSync.directory(of: path)
    }

    private func copy(to path: String) throws(StoreFault) {
        try connection.execute("PRAGMA query_only = OFF")
        try HistoryDatabase.copy(connection, to: path)
        try connection.execute("PRAGMA query_only = ON")
        try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE).markAsCopy()
    }
}

/// A backup that is open for reading, so that its reader may give up rights before ``Restore``.
public final class RestoreSource {
    fileprivate let connection: SQLiteConnection
    private let place: stat
    private let remedy: String

    /// Opens a database that `gattherd db backup` has written, or a copy of one that was closed.
    ///
    /// - Parameters:
    ///   - path: The database.
    ///   - remedy: The advice if it cannot be restored.
    /// - Throws: ``StoreFault``: `damaged` if it is no backup or cannot be read.
    public init(
        _ path: String,
        remedy: String = "name a file that 'gattherd db backup' has written"
    ) throws(StoreFault) {
        var place = stat()
        guard unsafe access(path, R_OK) == 0, unsafe stat(path, &place) == 0 else {
            throw StoreFault("\(path): \(SystemError.current); \(remedy)", .damaged)
        }
        let content = FileContent(path)
        guard content == .database else {
            throw StoreFault("\(path): this is \(content.words), not a backup; \(remedy)", .damaged)
        }
        (self.place, self.remedy) = (place, remedy)
        connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READONLY)
        guard case .version = try HistoryDatabase.content(of: connection, remedy: remedy) else {
            throw StoreFault("\(path): the database is empty; \(remedy)", .damaged)
        }
    }

    fileprivate func expectAnother(than path: String) throws(StoreFault) {
        var other = stat()
        guard unsafe stat(path, &other) == 0 else { return }
        guard place.st_ino != other.st_ino || place.st_dev != other.st_dev else {
            throw StoreFault("\(connection.path): this is the history itself; \(remedy)", .damaged)
        }
    }
}

/// Replaces a history by a copy.
///
/// The copy is checked and completed beside the database, and then renamed atomically: after a power loss there is the
/// old history or the new one. The replaced file is kept. Numbers continue above all assigned ones.
public struct Restore {
    /// The gap in the numbers if the assigned ones are unknown: years of readings.
    private static let unknownGap: Int64 = 100_000_000_000

    /// The path of the replaced database; `nil` if there was none.
    public private(set) var replaced: String?
    /// True if the numbers assigned after the copy are unknown, so that a large gap was left.
    public private(set) var skipsNumbers = false
    /// The number of samples in the restored history.
    public private(set) var samples = 0
    /// The size of the restored database in bytes.
    public private(set) var size: Int64 = 0

    private let path: String
    private let draft: String
    private let owner: FileOwner

    /// Restores a backup.
    ///
    /// - Parameters:
    ///   - source: The backup.
    ///   - path: The history to replace.
    ///   - time: A part of the replaced file's name.
    /// - Throws: ``StoreFault``: `inUse` when a daemon has the history, `damaged` when the copy is not good.
    public init(_ source: RestoreSource, to path: String, at time: Timestamp) throws(StoreFault) {
        try self.init(source, to: path, at: time, nil)
    }

    /// Restores a backup, with the lock that the caller has on the history, if any.
    package init(
        _ source: RestoreSource,
        to path: String,
        at time: Timestamp,
        _ lock: HistoryLock?
    ) throws(StoreFault) {
        self.path = DatabaseName.resolved(path)
        draft = self.path + ".restore"
        owner = FileOwner(database: self.path)
        try source.expectAnother(than: self.path)
        try FileContent.expectHistory(self.path)
        guard owner.isReachable else {
            let remedy = "run this as root or as that user"
            throw StoreFault("\(self.path): its directory belongs to user \(owner.user); \(remedy)")
        }
        let lock = if let lock { lock.lock } else { try FileLock(database: self.path) }
        defer { for suffix in ["", "-wal", "-shm", "-journal"] { unsafe unlink(draft + suffix) } }
        let mark = try copy(source.connection)
        try raiseNumbers(above: mark)
        try exchange(at: time)
        try owner.apply(to: self.path, suffixes: ["", "-seq", "-lock"])
        withExtendedLifetime(lock) {}
    }

    /// Creates a checked copy beside the database; returns the highest number in it.
    private mutating func copy(_ backup: SQLiteConnection) throws(StoreFault) -> Int64 {
        for suffix in ["", "-wal", "-shm", "-journal"] { unsafe unlink(draft + suffix) }
        try HistoryDatabase.copy(backup, to: draft)
        let copy = try SQLiteConnection(path: draft, flags: SQLITE_OPEN_READWRITE)
        try HistoryDatabase.expectWhole(copy)
        try copy.markAsCopy()
        samples = Int(try copy.integer("SELECT count(*) FROM sample"))
        size = try copy.integer("PRAGMA page_count") * copy.integer("PRAGMA page_size")
        guard unsafe chmod(draft, mode) == 0 else { throw StoreFault(errno: errno, "cannot change", path: draft) }
        try owner.apply(to: draft)
        try FileSync.file(draft)
        return try Self.mark(of: copy)
    }

    /// The permissions of the replaced file, with write access for the daemon.
    private var mode: mode_t {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return 0o640 }
        return status.st_mode & 0o777 | 0o600
    }

    /// Returns the highest assigned number in a database.
    private static func mark(of connection: SQLiteConnection) throws(StoreFault) -> Int64 {
        max(
            try StateTable(connection).value(of: .seq),
            try connection.integer("SELECT max(seq) FROM head")
        )
    }

    /// Raises the sequence file to the highest number in the copy, the replaced history and the file itself.
    private mutating func raiseNumbers(above mark: Int64) throws(StoreFault) {
        let file = SequenceFile(path: path + "-seq")
        let replaced = replacedMark()
        var wanted = max(mark, replaced ?? 0)
        if case .mark(let known) = file.read() {
            guard known < wanted else { return }
        } else if replaced == nil {
            wanted += Self.unknownGap
            skipsNumbers = true
        }
        guard wanted <= SequenceNumbers.highest else { throw StoreFault("\(path): its sequence numbers are used up") }
        try file.write(wanted)
    }

    /// Returns the sequence mark of the replaced history; `nil` without a readable one.
    private func replacedMark() -> Int64? {
        guard FileContent(path) == .database else { return nil }
        do throws(StoreFault) {
            return try Self.mark(of: try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE))
        } catch {
            return nil
        }
    }

    /// Renames the copy to the database's name; the replaced database's WAL must not be applied to the copy.
    private mutating func exchange(at time: Timestamp) throws(StoreFault) {
        let isThere = unsafe access(path, F_OK) == 0
        if isThere { Self.truncateWAL(path) }
        let aside = try DamagedFile(path: path).linkAside(as: "replaced", at: time)
        if isThere { replaced = aside }
        guard unsafe rename(draft, path) == 0 else { throw StoreFault(errno: errno, "cannot replace", path: path) }
        try FileSync.directory(of: path)
    }

    /// Checkpoints the replaced database, so that its WAL is not needed any more.
    private static func truncateWAL(_ path: String) {
        guard let connection = try? SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE) else { return }
        connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
    }
}
