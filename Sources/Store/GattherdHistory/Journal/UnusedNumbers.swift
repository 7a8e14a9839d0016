import GattherdModel

/// The gaps among the numbers of the journal's entries.
///
/// A crash leaves one of up to a block of ``SequenceNumbers``, and a failed commit one of the size of its batch.
/// No entry has these numbers, so they do not count as waiting.
package struct UnusedNumbers: Hashable, Sendable {
    private struct Gap: Hashable {
        let after: Int64
        let through: Int64
    }

    /// The smallest gap that is found in a file; smaller ones count as entries.
    fileprivate static let smallest: Int64 = 100
    /// The maximum number of gaps; beyond it the numbers of the lowest one count as entries.
    private static let maximumGaps = 4096

    /// The gaps, in ascending order.
    private var gaps: [Gap] = []

    init() {}

    /// Adds a gap above all others, which may continue the last one.
    mutating func add(after: Int64, through: Int64) {
        guard through > after else { return }
        let isContinued = gaps.last?.through == after
        let start = isContinued ? gaps.removeLast().after : after
        gaps.append(Gap(after: start, through: through))
        trim()
    }

    /// Adds the gaps of `others` above `floor`, which is above all gaps here.
    mutating func add(_ others: UnusedNumbers, above floor: Int64) {
        for gap in others.gaps { add(after: max(gap.after, floor), through: gap.through) }
    }

    /// Adds gaps below all others.
    mutating func addLower(_ lower: UnusedNumbers) {
        gaps = lower.gaps + gaps
        trim()
    }

    private mutating func trim() {
        gaps.removeFirst(max(0, gaps.count - Self.maximumGaps))
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
    /// A long backlog has millions of extents, so the entries are merged as they are read, and not sorted.
    ///
    /// - Parameters:
    ///   - connection: The file.
    ///   - floor: A number above which all extents are in the file.
    ///   - end: The last number that is searched.
    /// - Throws: ``StoreFault`` if the file cannot be read.
    init(_ connection: SQLiteConnection, after floor: Int64, through end: Int64) throws(StoreFault) {
        self.init()
        guard end - floor > Self.smallest else { return }
        let select = try Statement(Self.entries, on: connection)
        select.bind(floor, end)
        var last = floor
        while try select.step() {
            addGap(after: last, before: select.integer(0))
            last = max(last, select.integer(1))
        }
        addGap(after: last, before: end + 1)
    }

    private mutating func addGap(after last: Int64, before first: Int64) {
        if first - last > Self.smallest { add(after: last, through: first - 1) }
    }

    /// Selects the first and the last number of all entries above ?1, up to and including ?2, in order.
    static let entries: String = {
        let others = ["event", "reject", "correction"].map {
            "UNION ALL SELECT id, id FROM \($0) WHERE id > ?1 AND id <= ?2"
        }
        return """
            SELECT first, last FROM outbox WHERE first > ?1 - \(Extent.capacity) AND last > ?1 AND first <= ?2
            \(others.joined(separator: " ")) ORDER BY 1
            """
    }()
}
