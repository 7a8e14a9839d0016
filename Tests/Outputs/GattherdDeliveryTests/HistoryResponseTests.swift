import GattherdModel
import Testing

@testable import GattherdDelivery

@Suite struct HistoryResponseTests {
    @Test func `an empty response is one piece, and a long one has "next" in its last piece`() throws {
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
