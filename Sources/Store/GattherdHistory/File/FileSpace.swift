import CSQLite
import GattherdModel
import GattherdSync

/// The database's size in pages of 4 KiB; returns free pages to the file system.
final class FileSpace {
    private let connection: SQLiteConnection
    private let pageCount: Statement
    private let freeCount: Statement
    /// False if another program has rewritten the file without incremental vacuum.
    private let canShrink: Bool
    /// The number of pages that are moved or truncated at once.
    private let step: Int64
    /// The number of written pages after which SQLite is queried again; a query costs as much as storing some readings.
    private let tolerance: Int
    private var counts: (total: Int64, free: Int64)?
    private var written = 0
    private var lastWALPages = 0

    init(_ connection: SQLiteConnection, step: Int, tolerance: Int) throws(StoreFault) {
        self.connection = connection
        self.step = Int64(step)
        self.tolerance = tolerance
        pageCount = try Statement("PRAGMA page_count", on: connection)
        freeCount = try Statement("PRAGMA freelist_count", on: connection)
        canShrink = try connection.integer("PRAGMA auto_vacuum") == 2
    }

    /// All pages, except some that the last commits have added.
    var total: Int64 { count().total }
    private var free: Int64 { count().free }
    var used: Int64 { total - free }

    /// Counts written pages; call it after each commit.
    func didCommit() {
        let pages = connection.walPages
        // A commit extends the WAL, or restarts it.
        written += pages < lastWALPages ? pages : pages - lastWALPages
        lastWALPages = pages
        if written >= tolerance { invalidate() }
    }

    /// Makes the next call query SQLite.
    func invalidate() {
        counts = nil
        written = 0
    }

    private func count() -> (total: Int64, free: Int64) {
        if let counts { return counts }
        let found = (Self.number(pageCount), Self.number(freeCount))
        counts = found
        return found
    }

    /// The free pages that stay for the next rows, so that pages are not moved back and forth.
    private var slack: Int64 { max(32, total / 32) }

    var isShrinkDue: Bool { canShrink && free > slack }

    /// Returns some free pages to the file system.
    func shrink() throws(StoreFault) {
        let count = min(step, free - slack / 2)
        if canShrink, count > 0 { try connection.execute("PRAGMA incremental_vacuum(\(count))") }
    }

    private static func number(_ statement: borrowing Statement) -> Int64 {
        defer { statement.reset() }
        guard let isThere = try? statement.step(), isThere else { return 0 }
        return statement.integer(0)
    }
}

/// Copies the WAL into the database once it has grown enough; costs nothing otherwise.
///
/// A reader that holds an old snapshot can prevent it; the next attempt follows some pages later. Overlapping readers
/// would keep the WAL from ever restarting. Once the WAL is large, the checkpoint waits for these readers. The wait is
/// short, because readers that arrive meanwhile do not need the WAL.
///
/// After a long read transaction, for example of a backup, the WAL may have gigabytes. Another thread then copies it.
struct WALCheckpointer {
    /// The size of a page and its header in the WAL, in bytes, with some room.
    private static let frameSize = 5150
    /// The longest wait for readers, in milliseconds.
    private static let timeout: Int32 = 50

    /// The copy of a large WAL.
    let background: WALCopy
    private let connection: SQLiteConnection
    /// The WAL size in pages at which it is copied into the file.
    private let threshold: Int
    /// The number of pages from which another thread copies them.
    private let large: Int
    private var next: Int
    /// The WAL size in pages at the last check.
    private var lastPages = 0

    init(
        _ connection: SQLiteConnection,
        pages: Int,
        large: Int = HistoryMaintenance.largeWAL
    ) throws(StoreFault) {
        self.connection = connection
        background = WALCopy(connection)
        threshold = pages
        self.large = large
        next = pages
        try connection.execute("PRAGMA journal_size_limit = \(pages * Self.frameSize)")
    }

    /// Copies the WAL if it has grown enough since the last attempt.
    mutating func runIfDue() {
        let pages = connection.walPages
        // A commit extends the WAL, or restarts it.
        if pages <= lastPages { next = threshold }
        if pages < max(lastPages, background.state.state.copied) { background.didRestart() }
        lastPages = pages
        guard pages >= next else { return }
        if pages >= threshold * 4, !isLarge {
            connection.checkpoint(SQLITE_CHECKPOINT_RESTART, timeout: Self.timeout)
        } else {
            copy()
        }
        next = pages + threshold / 4
    }

    /// True if there are so many pages to copy that the writer would wait for long.
    private var isLarge: Bool { connection.walPages - background.state.state.copied >= large }

    /// Copies the WAL as far as readers permit, without waiting for them.
    func copy() {
        if isLarge { background.start() } else { connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE) }
    }

    /// Copies and truncates the WAL; a large one is only copied.
    func flush() {
        if isLarge { background.start() } else { truncate() }
    }

    /// Copies and truncates the WAL before the connection is closed.
    ///
    /// A large WAL stays for the next start, which has more time than a stop.
    func close() {
        if isLarge { connection.keepsWALOnClose(true) } else { truncate() }
    }

    /// Copies and truncates the WAL, whatever its size is.
    func truncate() {
        connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
    }
}
