import GattherdModel
import Testing

@testable import GattherdHistory

/// The readings that delivery gets without a query.
@Suite struct JournalTailTests {
    private func readings(_ seqs: ClosedRange<Int64>, octets: Int = 10) -> [JournalReading] {
        seqs.map { JournalReading(seq: $0, device: "d", stream: "s", payload: Array(repeating: 0, count: octets)) }
    }

    @Test func `committed readings are returned once, in order, up to the limit`() {
        let tail = JournalTail()
        tail.append(readings(6...8), after: 5, through: 8)
        tail.append(readings(9...9), after: 8, through: 9)
        #expect(tail.dequeue(after: 5, limit: 2)?.map(\.seq) == [6, 7])
        #expect(tail.handedOver == 7)
        #expect(tail.dequeue(after: 5, limit: 2) == nil)
        #expect(tail.dequeue(after: 7, limit: 100)?.map(\.seq) == [8, 9])
        #expect(tail.dequeue(after: 9, limit: 100) == nil)
    }

    @Test func `readings before the tail are read from the file`() {
        let tail = JournalTail()
        #expect(tail.dequeue(after: 0, limit: 10) == nil)
        tail.append(readings(6...8), after: 5, through: 8)
        #expect(tail.dequeue(after: 4, limit: 10) == nil)
        #expect(tail.dequeue(after: 6, limit: 10)?.map(\.seq) == [7, 8])
    }

    @Test func `after a gap in the numbers the tail starts again`() {
        let tail = JournalTail()
        tail.append(readings(1...3), after: 0, through: 3)
        tail.append(readings(6...7), after: 5, through: 7)
        #expect(tail.dequeue(after: 3, limit: 10) == nil)
        #expect(tail.dequeue(after: 5, limit: 10)?.map(\.seq) == [6, 7])
    }

    @Test func `after a reset the tail holds only later readings`() {
        let tail = JournalTail()
        tail.append(readings(1...3), after: 0, through: 3)
        tail.removeAll()
        #expect(tail.dequeue(after: 0, limit: 10) == nil)
        #expect(tail.dequeue(after: 3, limit: 10) == nil)
        tail.append(readings(7...8), after: 6, through: 8)
        #expect(tail.dequeue(after: 3, limit: 10) == nil)
        #expect(tail.dequeue(after: 6, limit: 10)?.map(\.seq) == [7, 8])
    }

    @Test func `without a consumer the tail stays within its capacity`() {
        let tail = JournalTail(capacity: 100)
        tail.append(readings(1...10), after: 0, through: 10)
        tail.append(readings(11...12), after: 10, through: 12)
        #expect(tail.dequeue(after: 0, limit: 100) == nil)
        #expect(tail.dequeue(after: 10, limit: 100)?.map(\.seq) == [11, 12])
        tail.append(readings(13...30), after: 12, through: 30)
        #expect(tail.dequeue(after: 12, limit: 100) == nil)
        #expect(tail.dequeue(after: 30, limit: 100) == nil)
    }
}
