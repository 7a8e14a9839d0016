import GattherdModel

/// The database's size in pages of 4 KiB; returns free pages to the file system.
final class FileSpace {
    private let connection: SQLiteConnection
    private let pageCount: Statement
    private let freeCount: Statement
    /// False in a file that another program has made anew without this ability.
    private let canShrink: Bool
    /// Pages that are moved or cut off at once.
    private let step: Int64
    /// After so many written pages SQLite is asked again: that costs as much as to store some readings.
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

    /// All pages, but for some that the last commits have added.
    var total: Int64 { count().total }
    private var free: Int64 { count().free }
    var used: Int64 { total - free }

    /// To be called after each commit.
    func didCommit() {
        let pages = connection.walPages
        // A commit makes the log longer, or else began it anew.
        written += pages < lastWALPages ? pages : pages - lastWALPages
        lastWALPages = pages
        if written >= tolerance { forget() }
    }

    /// Lets SQLite be asked the next time.
    func forget() {
        counts = nil
        written = 0
    }

    private func count() -> (total: Int64, free: Int64) {
        if let counts { return counts }
        let found = (Self.number(pageCount), Self.number(freeCount))
        counts = found
        return found
    }

    /// Free pages that are left for what comes next, so that nothing is moved back and forth.
    private var slack: Int64 { max(32, total / 32) }

    var isShrinkDue: Bool { canShrink && free > slack }

    /// Gives some free pages back.
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
