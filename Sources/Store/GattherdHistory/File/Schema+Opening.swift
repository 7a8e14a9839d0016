import CSQLite
import GattherdModel
import Glibc

extension Schema {
    /// Opens the file for the one who writes it, makes it if it is not there, and brings it to this version.
    ///
    /// `synchronous=FULL`: a commit is on the disk when `append` returns, because what is published next must
    /// still be in history after a power loss. It costs one `fdatasync` per batch, not per sample, and a slow
    /// card makes batches larger, not readings fewer. The checkpoints are ours, see ``HistoryFile``.
    static func open(_ path: String, isSuspect: Bool = false) throws(StoreFault) -> SQLiteConnection {
        try FileContent.expectHistory(path)
        let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        // Whatever is wrong with the file, it stays as it is.
        connection.keepsWALOnClose(true)
        if try check(connection) == .empty {
            // Without VACUUM an empty file that has a header already would keep what the header says.
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
        try lookForDamage(connection, isSuspect: isSuspect)
        try migrate(connection, steps: steps)
        let taken = try renewViews(connection)
        guard taken.isEmpty else {
            let names = taken.joined(separator: ", ")
            throw StoreFault("\(path): tables have the names of our views: \(names); rename or drop them")
        }
        connection.keepsWALOnClose(false)
        // Without the right to do so we are no user whose files would be in the way of others.
        try? FileOwner(database: path).adopt(path, suffixes: ["", "-wal", "-shm"])
        return connection
    }

    /// Looks at all of a file that is small or in doubt; elsewhere damage shows when it is met.
    private static func lookForDamage(_ connection: SQLiteConnection, isSuspect: Bool) throws(StoreFault) {
        let pages = try connection.integer("PRAGMA page_count")
        guard isSuspect || pages <= 16_384 else { return }
        try expectWhole(connection)
    }

    /// Looks at all of a file; throws when it is damaged.
    static func expectWhole(_ connection: SQLiteConnection) throws(StoreFault) {
        let statement = try Statement("PRAGMA quick_check(1)", on: connection)
        guard try statement.step(), statement.text(0) != "ok" else { return }
        throw StoreFault("\(connection.path): the file is damaged: \(statement.text(0))", .damaged)
    }

    /// Runs what copies all of a file.
    ///
    /// SQLite may take a page number that is damaged for a file that is too large, and says that the disk is full.
    static func copying(_ connection: SQLiteConnection, _ body: () throws(StoreFault) -> Void) throws(StoreFault) {
        do throws(StoreFault) {
            try body()
        } catch {
            if error.kind == .full { try expectWhole(connection) }
            throw error
        }
    }

    /// Throws when there is no file.
    static func expectFile(_ path: String) throws(StoreFault) {
        guard unsafe access(path, F_OK) != 0 else { return }
        guard errno != ENOENT else {
            throw StoreFault("\(path): there is no history here yet; the daemon creates it when it starts")
        }
        throw StoreFault("\(path): \(unsafe String(cString: strerror(errno))); is this the daemon's history.path?")
    }

    /// Opens the file for somebody who only reads, while it is written or not.
    static func openForReading(_ path: String) throws(StoreFault) -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READONLY)
        try expectThisVersion(connection)
        try connection.execute(
            """
            PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF
            """
        )
        return connection
    }

    /// Opens a file of this version that is there, for work that changes nothing of what it says.
    static func openForMaintenance(_ path: String) throws(StoreFault) -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE)
        try expectThisVersion(connection)
        try connection.execute("PRAGMA trusted_schema = OFF")
        return connection
    }

    private static func expectThisVersion(_ connection: SQLiteConnection) throws(StoreFault) {
        guard try check(connection) == .version(steps.count) else {
            throw StoreFault("\(connection.path): written by an older gattherd; start the daemon once")
        }
    }

    enum Content: Equatable {
        case empty
        case version(Int)
    }

    /// Returns the content of the file before anything is changed.
    ///
    /// - Throws: ``StoreFault`` when another program made it, or a newer version of this one.
    static func check(_ connection: SQLiteConnection) throws(StoreFault) -> Content {
        let id = try connection.integer("PRAGMA application_id")
        let version = try connection.integer("PRAGMA user_version")
        let objects = try connection.integer("SELECT count(*) FROM sqlite_schema")
        if objects == 0 && version == 0 && (id == 0 || id == applicationID) { return .empty }
        guard id == applicationID else {
            throw StoreFault(
                "\(connection.path): another program's database (application_id \(id)); choose another history.path"
            )
        }
        guard version <= steps.count else {
            throw StoreFault(
                "\(connection.path): written by a newer gattherd (version \(version), this one knows \(steps.count)); "
                    + "update gattherd, or choose another history.path"
            )
        }
        return .version(Int(version))
    }

    /// Takes the steps that the file has not taken yet, each in a transaction of its own.
    static func migrate(_ connection: SQLiteConnection, steps: [String]) throws(StoreFault) {
        var version = Int(try connection.integer("PRAGMA user_version"))
        while version >= 0 && version < steps.count {
            let sql = steps[version]
            version += 1
            try connection.transaction { () throws(StoreFault) in
                try connection.execute(sql)
                try connection.execute("PRAGMA application_id = \(applicationID); PRAGMA user_version = \(version)")
            }
        }
    }

    /// Network and overlay file systems may refuse, without an error.
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
