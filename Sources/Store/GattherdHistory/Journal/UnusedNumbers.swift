import GattherdModel

/// The gaps among the numbers of the journal's entries: a crash leaves one of up to a block of ``SequenceNumbers``.
///
/// No entry has these numbers, so they do not count as waiting.
package struct UnusedNumbers: Hashable, Sendable {
    private struct Gap: Hashable {
        let after: Int64
        let through: Int64
    }

    /// The smallest gap that is found in a file; smaller ones count as entries.
    fileprivate static let smallest: Int64 = 100

    /// The gaps, in ascending order.
    private var gaps: [Gap] = []

    init() {}

    /// Adds a gap above all others.
    mutating func add(after: Int64, through: Int64) {
        if through > after { gaps.append(Gap(after: after, through: through)) }
    }

    /// Adds gaps below all others.
    mutating func addLower(_ lower: UnusedNumbers) {
        gaps = lower.gaps + gaps
    }

    /// The count of unused numbers above `start`, up to and including `end`.
    package func count(after start: Int64, through end: Int64) -> Int64 {
        gaps.reduce(0) { count, gap in
            count + max(0, min(gap.through, end) - max(gap.after, start))
        }
    }

    /// The number above which `count` numbers in use are left, up to and including `head`.
    func start(ofLast count: Int64, through head: Int64) -> Int64 {
        var (end, left) = (head, count)
        for gap in gaps.reversed() where gap.after < end {
            let used = max(0, end - gap.through)
            guard used <= left else { break }
            (end, left) = (gap.after, left - used)
        }
        return end - left
    }
}

extension UnusedNumbers {
    /// Finds the gaps between the entries of a file.
    ///
    /// - Parameters:
    ///   - connection: The file.
    ///   - floor: A number above which all extents are in the file.
    ///   - end: The last number that is searched.
    /// - Throws: ``StoreFault`` if the file cannot be read.
    init(_ connection: SQLiteConnection, after floor: Int64, through end: Int64) throws(StoreFault) {
        self.init()
        guard end - floor > Self.smallest else { return }
        let others = ["event", "reject", "correction"].map { "SELECT id, id FROM \($0) WHERE id > ?1 AND id <= ?2" }
        let select = try Statement(
            """
            WITH used (first, last) AS (
                VALUES (?1, ?1), (?2 + 1, ?2 + 1)
                UNION ALL SELECT first, last FROM outbox
                    WHERE first > ?1 - \(Extent.capacity) AND last > ?1 AND first <= ?2
                UNION ALL \(others.joined(separator: " UNION ALL "))
            )
            SELECT before, first - 1 FROM (SELECT first, lag(last) OVER (ORDER BY first, last) AS before FROM used)
            WHERE first - before > \(Self.smallest) ORDER BY first
            """,
            on: connection
        )
        let found = try select.rows(binding: floor, end) { row in (row.integer(0), row.integer(1)) }
        for (after, through) in found { add(after: after, through: through) }
    }
}
