import CSQLite
public import GattherdModel
import Glibc

/// Puts a copy of a history in the place of the one that is there.
///
/// The copy is checked and completed beside the database, and takes its name in one step: whenever the power fails,
/// there is the old history or the new one. The replaced file is kept. Numbers go on above all that were given.
public struct Restore {
    /// Numbers that are left out where nobody knows which were given: years of readings.
    private static let unknownGap: Int64 = 100_000_000_000

    /// The path of the replaced database; `nil` if there was none.
    public private(set) var replaced: String?
    /// True if it is not known which numbers were given after the copy was made: many were left out.
    public private(set) var skipsNumbers = false
    /// Samples of the restored history.
    public private(set) var samples = 0
    /// Bytes of the restored database.
    public private(set) var size: Int64 = 0

    private let path: String
    private let draft: String
    private let owner: FileOwner

    /// Restores `backup`.
    ///
    /// - Parameters:
    ///   - backup: A database that `gattherd db backup` has written, or a copy of one that was closed.
    ///   - path: The history that it replaces.
    ///   - time: Becomes part of the name of the replaced file.
    /// - Throws: ``StoreFault``: `inUse` when a daemon has the history, `damaged` when the copy is not good.
    public init(_ backup: String, to path: String, at time: Timestamp) throws(StoreFault) {
        self.path = DatabaseName.resolved(path)
        draft = self.path + ".restore"
        owner = FileOwner(database: self.path)
        try Self.expectBackup(backup, otherThan: self.path)
        try FileContent.expectHistory(self.path)
        guard owner.isReachable else {
            let remedy = "run this as root or as that user"
            throw StoreFault("\(self.path): its directory belongs to user \(owner.user); \(remedy)")
        }
        let lock = try FileLock(database: self.path)
        defer { for suffix in ["", "-wal", "-shm", "-journal"] { unsafe unlink(draft + suffix) } }
        let mark = try copy(backup)
        try raiseNumbers(above: mark)
        try exchange(at: time)
        try owner.adopt(self.path, suffixes: ["", "-seq", "-lock"])
        withExtendedLifetime(lock) {}
    }

    private static func expectBackup(_ backup: String, otherThan path: String) throws(StoreFault) {
        guard unsafe access(backup, R_OK) == 0 else {
            throw StoreFault("\(backup): \(unsafe String(cString: strerror(errno)))", .damaged)
        }
        guard FileContent(backup) == .database else { throw StoreFault("\(backup): this is no history", .damaged) }
        var (one, other) = (stat(), stat())
        guard unsafe stat(backup, &one) == 0, unsafe stat(path, &other) == 0 else { return }
        guard one.st_ino != other.st_ino || one.st_dev != other.st_dev else {
            throw StoreFault("\(backup): this is the history itself", .damaged)
        }
    }

    /// Makes a checked copy beside the database; returns the highest number that it knows.
    private mutating func copy(_ backup: String) throws(StoreFault) -> Int64 {
        for suffix in ["", "-wal", "-shm", "-journal"] { unsafe unlink(draft + suffix) }
        let original = try SQLiteConnection(path: backup, flags: SQLITE_OPEN_READONLY)
        guard case .version = try Schema.check(original) else {
            throw StoreFault("\(backup): this is no history", .damaged)
        }
        let statement = try Statement("VACUUM INTO ?1", on: original)
        try Schema.copying(original) { () throws(StoreFault) in try statement.run(text: draft.utf8Span.span, at: 1) }
        let copy = try SQLiteConnection(path: draft, flags: SQLITE_OPEN_READWRITE)
        try Schema.expectWhole(copy)
        samples = Int(try copy.integer("SELECT count(*) FROM sample"))
        size = try copy.integer("PRAGMA page_count") * copy.integer("PRAGMA page_size")
        guard unsafe chmod(draft, mode) == 0 else { throw StoreFault(errno: errno, "cannot change", path: draft) }
        try owner.adopt(draft)
        try FileSync.file(draft)
        return try Self.mark(of: copy)
    }

    /// As the replaced file, but the daemon must be able to write it.
    private var mode: mode_t {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return 0o640 }
        return status.st_mode & 0o777 | 0o600
    }

    /// The highest number that a database knows to have been given.
    private static func mark(of connection: SQLiteConnection) throws(StoreFault) -> Int64 {
        max(
            try StateTable(connection).value(of: .seq),
            try StateTable(connection).value(of: .cursor),
            try connection.integer("SELECT max(seq) FROM head")
        )
    }

    /// Makes the file with the numbers say at least what the copy, the replaced history and it itself know.
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

    /// Returns the sequence mark of the replaced history; `nil` if there is none that can be read.
    private func replacedMark() -> Int64? {
        guard FileContent(path) == .database else { return nil }
        do throws(StoreFault) {
            return try Self.mark(of: try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE))
        } catch {
            return nil
        }
    }

    /// Gives the copy the database's name; a WAL of the replaced one must not be taken for its own.
    private mutating func exchange(at time: Timestamp) throws(StoreFault) {
        let isThere = unsafe access(path, F_OK) == 0
        if isThere { Self.emptyLog(path) }
        let aside = try DamagedFile(path: path).linkAside(as: "replaced", at: time)
        if isThere { replaced = aside }
        guard unsafe rename(draft, path) == 0 else { throw StoreFault(errno: errno, "cannot replace", path: path) }
        try FileSync.directory(of: path)
    }

    /// Completes the replaced database, so that its WAL is not needed any more.
    private static func emptyLog(_ path: String) {
        guard let connection = try? SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE) else { return }
        connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
    }
}
