import GattherdModel
import Testing

@testable import GattherdDelivery

@Suite struct HistoryRowsTests {
    /// So many rows at each second, and the page of them that begins with `since`.
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
        "Pages end between two instants; only one instant that is too much for any page goes beyond the limit",
        arguments: [
            ([1, 1, 1], 3, [3]), ([1, 1, 1], 2, [2, 1]), ([3, 3, 3], 4, [3, 3, 3]), ([3, 3, 3], 6, [6, 3]),
            ([5, 2, 5], 3, [5, 2, 5]), ([1, 5, 1, 1], 3, [1, 5, 2]), ([5], 5, [5]), ([], 5, [0]),
        ]
    )
    func pages(rows: [Int], limit: Int, expected: [Int]) throws {
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

    @Test("An answer without a row is one piece; a long one has its `next` in the last piece")
    func answers() throws {
        let empty = HistoryResponse(limit: 5).finish().map { String(decoding: $0, as: UTF8.self) }
        #expect(empty == [#"{"chunk":0,"last":true,"rows":[]}"#])
        var answer = HistoryResponse(limit: 900)
        for second in 0..<901 as Range<Int64> {
            _ = answer.add(Timestamp(microseconds: second * 1_000_000)) {
                $0.key("n"); $0.integer(second)
            }
        }
        let pieces = answer.finish().map { String(decoding: $0, as: UTF8.self) }
        #expect(pieces.count == 3)
        #expect(pieces.map { $0.contains(#""next":"1970-01-01T00:15:00.000000Z""#) } == [false, false, true])
    }
}
