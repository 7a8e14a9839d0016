import CSQLite
import GattherdModel
import GattherdSync
import Glibc

/// Opens history's database for its writer, readers and maintenance, and verifies that it is one.
enum HistoryDatabase {
    /// Opens the file for the writer; creates it if necessary, and upgrades its schema.
    ///
    /// `synchronous=FULL`: a commit is on the disk when `append` returns, because published readings must still be in
    /// history after a power loss. It costs one `fdatasync` per batch, not per sample; a slow card makes batches
    /// larger but loses no readings. Checkpoints are run explicitly, see ``HistoryFile``.
    static func open(_ path: String) throws(StoreFault) -> SQLiteConnection {
        try FileContent.expectHistory(path)
        let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        // The file stays unchanged if the checks fail.
        connection.keepsWALOnClose(true)
        if try content(of: connection) == .empty {
            // Without VACUUM an empty file with a header would keep the settings of the header.
            try connection.execute("PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        }
        try useWriteAheadLog(connection)
        try connection.execute(
            """
            PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF; PRAGMA foreign_keys = ON; PRAGMA cache_size = -1024;
            PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF
            """
        )
        connection.checkpointsByHand()
        try checkForDamage(connection)
        try Schema.migrate(connection, steps: Schema.steps)
        let taken = try HistoryViews.renew(connection)
        guard taken.isEmpty else {
            let names = taken.joined(separator: ", ")
            throw StoreFault("\(path): tables have the names of gattherd's views: \(names); rename or drop them")
        }
        connection.keepsWALOnClose(false)
        // Only root may change the owner, and only root's files would block the daemon.
        try? FileOwner(database: path).apply(to: path, suffixes: ["", "-wal", "-shm"])
        return connection
    }

    /// Checks all of a small file; in a larger one, damage is detected when it is read.
    private static func checkForDamage(_ connection: SQLiteConnection) throws(StoreFault) {
        let pages = try connection.integer("PRAGMA page_count")
        guard pages <= 16_384 else { return }
        try expectWhole(connection)
    }

    /// Checks all of a file; throws if it is damaged.
    static func expectWhole(_ connection: SQLiteConnection) throws(StoreFault) {
        let statement = try Statement("PRAGMA quick_check(1)", on: connection)
        guard try statement.step(), statement.text(0) != "ok" else { return }
        throw StoreFault("\(connection.path): the file is damaged: \(statement.text(0))", .damaged)
    }

    /// Checks a whole file that no connection of this thread has open; this may take minutes.
    ///
    /// - Throws: ``StoreFault``, `damaged` if it is.
    static func check(_ path: String) throws(StoreFault) {
        let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READONLY)
        connection.keepsWALOnClose(true)
        try expectWhole(connection)
    }

    /// Runs an operation that copies the whole file.
    ///
    /// SQLite may report a damaged page number as a full disk, because the file seems too large.
    static func copying(_ connection: SQLiteConnection, _ body: () throws(StoreFault) -> Void) throws(StoreFault) {
        do throws(StoreFault) {
            try body()
        } catch {
            if error.kind == .full { try expectWhole(connection) }
            throw error
        }
    }

    /// Copies a snapshot without free pages to a new file, which only its owner can read.
    ///
    /// Replaces a file at `path` that a killed process left.
    static func copy(_ connection: SQLiteConnection, to path: String) throws(StoreFault) {
        unsafe unlink(path)
        // SQLite would let all users read a file that it creates; it also writes to an empty one.
        let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let code = errno
            let remedy = "check that the directory exists and that this user may write to it"
            throw StoreFault("\(path): cannot create: \(SystemError(code)); \(remedy)", StoreFault.Kind(errno: code))
        }
        close(descriptor)
        try copying(connection) { () throws(StoreFault) in
            try Statement("VACUUM INTO ?1", on: connection).run(binding: path)
        }
    }

    /// Opens the file for reading only, also while a daemon writes it.
    static func openForReading(_ path: String) throws(StoreFault) -> SQLiteConnection {
        try FileContent.expectExistingHistory(path)
        let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READONLY)
        try expectThisVersion(connection)
        try connection.execute(
            """
            PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF
            """
        )
        return connection
    }

    /// Opens an existing file of this version, for work that does not change its content.
    static func openForMaintenance(_ path: String) throws(StoreFault) -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE)
        try expectThisVersion(connection)
        try connection.execute("PRAGMA trusted_schema = OFF")
        return connection
    }

    private static func expectThisVersion(_ connection: SQLiteConnection) throws(StoreFault) {
        switch try content(of: connection, remedy: "choose the file of the daemon's history.path") {
        case .version(Schema.steps.count): return
        case .version: throw StoreFault("\(connection.path): written by an older gattherd; start the daemon once")
        case .empty:
            throw StoreFault("\(connection.path): the database is empty; the daemon creates its tables when it starts")
        }
    }

    enum Content: Equatable {
        case empty
        case version(Int)
    }

    /// Returns the content of the file before anything is changed.
    ///
    /// - Parameters:
    ///   - connection: The open file.
    ///   - remedy: The advice if it is another program's database.
    /// - Returns: The version, if the file has tables.
    /// - Throws: ``StoreFault`` if another program, a newer version or one from before the first release created it.
    static func content(
        of connection: SQLiteConnection,
        remedy: String = "choose another history.path"
    ) throws(StoreFault) -> Content {
        let id = try connection.integer("PRAGMA application_id")
        let version = try connection.integer("PRAGMA user_version")
        let objects = try connection.integer("SELECT count(*) FROM sqlite_schema")
        if objects == 0 && version == 0 && (id == 0 || id == Schema.applicationID) { return .empty }
        guard id == Schema.applicationID else {
            throw StoreFault(
                "\(connection.path): this is another program's database (application_id \(id)), not a history; "
                    + remedy
            )
        }
        guard version <= Schema.steps.count else {
            throw StoreFault(
                "\(connection.path): written by a newer gattherd, or by one from before the first release "
                    + "(version \(version), this one knows \(Schema.steps.count)); update gattherd, or choose another "
                    + "history.path"
            )
        }
        guard try connection.integer(newestColumns) == 1 else {
            throw StoreFault(
                "\(connection.path): written by a gattherd from before the first release; export it with that one, "
                    + "choose another history.path, and import it there"
            )
        }
        return .version(Int(version))
    }

    private static let newestColumns = """
        SELECT count(*) FROM pragma_table_info('\(Schema.newest.table)') WHERE name = '\(Schema.newest.column)'
        """

    /// Network and overlay file systems may refuse WAL mode without an error.
    private static func useWriteAheadLog(_ connection: SQLiteConnection) throws(StoreFault) {
        let statement = try Statement("PRAGMA journal_mode = WAL", on: connection)
        let mode = try statement.step() ? statement.text(0) : "nothing"
        guard mode == "wal" else {
            throw StoreFault(
                "\(connection.path): SQLite cannot use a write-ahead log here (journal_mode \(mode)); "
                    + "use a local file system"
            )
        }
    }
}
