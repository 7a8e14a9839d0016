import GattherdModel
import Testing

@Suite struct HistoryRowsTests {
    /// A page with these numbers of rows at each second, starting at `since`.
    private func page(_ rows: [Int], limit: Int, since: Int = 0) -> HistoryRows {
        var page = HistoryRows(limit: limit)
        for second in since..<rows.count {
            for row in 0..<rows[second] {
                let isTaken = page.add(Timestamp(microseconds: Int64(second) * 1_000_000)) { writer in
                    writer.key("row")
                    writer.integer(row)
                }
                guard isTaken else { return page }
            }
        }
        return page
    }

    @Test(
        arguments: [
            ([1, 1, 1], 3, [3]), ([1, 1, 1], 2, [2, 1]), ([3, 3, 3], 4, [3, 3, 3]), ([3, 3, 3], 6, [6, 3]),
            ([5, 2, 5], 3, [5, 2, 5]), ([1, 5, 1, 1], 3, [1, 5, 2]), ([5], 5, [5]), ([], 5, [0]),
        ]
    )
    func `pages end between two instants, and only an instant too large for any page exceeds the limit`(
        rows: [Int],
        limit: Int,
        expected: [Int]
    ) throws {
        var counts: [Int] = []
        var all: [[UInt8]] = []
        var since: Int? = 0
        while let start = since, counts.count <= expected.count {
            let page = page(rows, limit: limit, since: start)
            counts.append(page.objects.count)
            all += page.objects
            since = page.next.map { Int($0.microseconds / 1_000_000) }
        }
        #expect(counts == expected)
        #expect(all == page(rows, limit: .max).objects)
    }

    /// A page with these numbers of rows at each second, each row with a text of this many bytes.
    private func page(texts: [Int], bytes: Int, since: Int = 0) -> HistoryRows {
        var page = HistoryRows(limit: 10_000)
        let text = String(repeating: "x", count: bytes)
        for second in since..<texts.count {
            for _ in 0..<texts[second] {
                let isTaken = page.add(Timestamp(microseconds: Int64(second) * 1_000_000)) { writer in
                    writer.key("value")
                    writer.string(text)
                }
                guard isTaken else { return page }
            }
        }
        return page
    }

    @Test func `a page ends at one MiB, and the next page continues without a gap`() throws {
        let texts = Array(repeating: 1, count: 1000)
        var sizes: [Int] = []
        var since: Int? = 0
        while let start = since, sizes.count < 10 {
            let page = page(texts: texts, bytes: 3000, since: start)
            #expect(page.objects.reduce(0) { $0 + $1.count } <= 1 << 20)
            sizes.append(page.objects.count)
            since = page.next.map { Int($0.microseconds / 1_000_000) }
        }
        #expect(sizes.count == 3 && sizes.reduce(0, +) == 1000)
    }

    @Test func `an instant with more than four MiB is cut off, and its omitted rows are counted`() throws {
        let page = page(texts: [2000, 1], bytes: 3000)
        #expect(page.objects.reduce(0) { $0 + $1.count } <= 4 << 20)
        #expect(page.omitted > 0 && page.objects.count + page.omitted == 2000)
        #expect(page.next == Timestamp(microseconds: 1_000_000))
    }
}
