import CSQLite
import GattherdModel
import GattherdSync
import Glibc

/// One open SQLite database, used by one thread at a time and closed when it is released.
///
/// Statements retain their connection, so that each is finalized before the database is closed.
@safe final class SQLiteConnection {
    /// The longest wait for another program's lock, in milliseconds.
    private static let timeout: Int32 = 5000

    let path: String
    let raw: OpaquePointer
    /// False once nobody waits for the rows of a long read.
    var isWanted: () -> Bool = { true }
    /// The WAL size in pages after the last commit; written by SQLite's hook.
    private let pages: UnsafeMutablePointer<Int32>
    /// The compiled statements of a transaction, because they surround each commit.
    private var begin: OpaquePointer?
    private var commit: OpaquePointer?
    /// The identity of the open file.
    let file: OpenDatabases.File?

    /// Opens the file, creates it depending on `flags` (`SQLITE_OPEN_…`), and waits for locks from then on.
    init(path: String, flags: Int32) throws(StoreFault) {
        var raw: OpaquePointer?
        let code = unsafe sqlite3_open_v2(path, &raw, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard let raw = unsafe raw else { throw StoreFault(sqlite: SQLITE_NOMEM, "out of memory", "open", path: path) }
        guard code == SQLITE_OK else {
            defer { unsafe sqlite3_close_v2(raw) }
            throw unsafe Self.fault(code, "open", raw, path)
        }
        self.path = path
        file = OpenDatabases.add(path)
        unsafe self.raw = raw
        unsafe pages = .allocate(capacity: 1)
        unsafe pages.initialize(to: 0)
        unsafe sqlite3_busy_timeout(raw, Self.timeout)
    }

    deinit {
        unsafe sqlite3_finalize(begin)
        unsafe sqlite3_finalize(commit)
        unsafe sqlite3_close_v2(raw)
        OpenDatabases.remove(file)
        unsafe pages.deallocate()
    }

    /// True if another program has deleted or renamed the open file, or given its name to another file.
    ///
    /// False if its folder is missing too, where no other file can be opened.
    var isReplaced: Bool {
        guard let file else { return false }
        if let found = OpenDatabases.File(path) { return found != file }
        return unsafe access(path, F_OK) != 0 && errno == ENOENT && access(path.parentFolder, W_OK) == 0
    }

    /// True if the open file has lost its name, and no other one can be opened there: its folder is gone, or read-only.
    var isOutOfReach: Bool { unsafe access(path, F_OK) != 0 && errno == ENOENT && !isReplaced }

    /// Runs literal statements without results, one after the other.
    func execute(_ sql: String) throws(StoreFault) {
        try check(unsafe sqlite3_exec(raw, sql, nil, nil, nil), sql)
    }

    /// Returns the first column of the first row of `sql`.
    func integer(_ sql: String) throws(StoreFault) -> Int64 {
        let statement = try Statement(sql, on: self)
        return try statement.step() ? statement.integer(0) : 0
    }

    /// Returns the same as ``integer(_:)``, but `nil` for NULL or no row.
    func optionalInteger(_ sql: String) throws(StoreFault) -> Int64? {
        let statement = try Statement(sql, on: self)
        return try statement.step() && !statement.isNull(0) ? statement.integer(0) : nil
    }

    /// The number of rows that the last statement inserted, changed or deleted.
    var changes: Int { Int(unsafe sqlite3_changes64(raw)) }

    /// Runs `body` in one write transaction, which is rolled back after any error.
    ///
    /// `IMMEDIATE`, because a read transaction that writes later can fail for good.
    func transaction(_ body: () throws(StoreFault) -> Void) throws(StoreFault) {
        unsafe try run("BEGIN IMMEDIATE", &begin)
        do throws(StoreFault) {
            try body()
            unsafe try run("COMMIT", &commit)
        } catch {
            rollBack()
            throw error
        }
    }

    /// Runs a statement that is compiled at its first use.
    private func run(_ sql: String, _ statement: inout OpaquePointer?) throws(StoreFault) {
        if unsafe statement == nil { try check(unsafe sqlite3_prepare_v2(raw, sql, -1, &statement, nil), sql) }
        defer { unsafe sqlite3_reset(statement) }
        try check(unsafe sqlite3_step(statement), sql)
    }

    /// A full disk or an I/O error may have ended the transaction already; then there is nothing to roll back.
    private func rollBack() {
        guard unsafe sqlite3_get_autocommit(raw) == 0 else { return }
        unsafe sqlite3_exec(raw, "ROLLBACK", nil, nil, nil)
    }

    /// Throws SQLite's last error unless `code` is a success.
    func check(_ code: Int32, _ sql: @autoclosure () -> String) throws(StoreFault) {
        switch code {
        case SQLITE_OK, SQLITE_ROW, SQLITE_DONE: return
        default:
            throw unsafe Self.fault(code, sql(), raw, path)
        }
    }
}

extension SQLiteConnection {
    private static func fault(_ code: Int32, _ action: String, _ raw: OpaquePointer, _ path: String) -> StoreFault {
        StoreFault(
            sqlite: code,
            errno: unsafe sqlite3_system_errno(raw),
            unsafe String(cString: sqlite3_errmsg(raw)),
            action,
            path: path
        )
    }

    /// Disables automatic checkpoints; call ``checkpoint(_:)`` instead.
    func checkpointsByHand() {
        unsafe sqlite3_wal_hook(
            raw,
            { context, _, _, count in
                unsafe context?.assumingMemoryBound(to: Int32.self).pointee = count
                return SQLITE_OK
            },
            pages
        )
    }

    /// Sets whether the WAL is left unchanged when the connection is closed.
    func keepsWALOnClose(_ isOn: Bool) {
        unsafe _ = gattherd_sqlite3_no_checkpoint_on_close(raw, isOn ? 1 : 0)
    }

    /// The size of the WAL in pages after the last commit.
    var walPages: Int { Int(unsafe pages.pointee) }

    /// Copies pages from the WAL to the file, as far as readers and the disk permit.
    ///
    /// - Parameters:
    ///   - mode: `SQLITE_CHECKPOINT_…`.
    ///   - timeout: The maximum wait for readers, in milliseconds.
    /// - Returns: True if the whole WAL was copied.
    @discardableResult
    func checkpoint(_ mode: Int32, timeout: Int32 = 0) -> Bool {
        unsafe sqlite3_busy_timeout(raw, timeout)
        defer { unsafe sqlite3_busy_timeout(raw, Self.timeout) }
        var (log, copied): (Int32, Int32) = (0, 0)
        let code = unsafe sqlite3_wal_checkpoint_v2(raw, nil, mode, &log, &copied)
        return code == SQLITE_OK && log == copied
    }

    /// Copies pages from the WAL to the file, as far as readers permit.
    ///
    /// - Returns: The number of pages at the start of the WAL that are in the file.
    func copyWAL() -> Int {
        var (log, copied): (Int32, Int32) = (0, 0)
        let code = unsafe sqlite3_wal_checkpoint_v2(raw, nil, SQLITE_CHECKPOINT_PASSIVE, &log, &copied)
        return code == SQLITE_OK ? Int(max(0, copied)) : 0
    }
}
