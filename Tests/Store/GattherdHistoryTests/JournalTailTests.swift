import GattherdModel
import Testing

@testable import GattherdHistory

/// The entries that consumers get without a query.
@Suite struct JournalTailTests {
    private let mqtt = JournalConsumerOptions(name: "mqtt")
    private let copy = JournalConsumerOptions(name: "copy", content: .everything)

    private func readings(_ seqs: ClosedRange<Int64>) -> [JournalEntry] {
        seqs.map { .reading(.test($0)) }
    }

    private func event(_ seq: Int64) -> JournalEntry {
        .event(LifecycleEvent(time: Fixture.epoch, device: nil, kind: "link", detail: "{}"), seq: seq)
    }

    private func next(
        _ tail: JournalTail,
        after seq: Int64,
        limit: Int = 100,
        for consumer: JournalConsumerOptions? = nil
    ) -> [Int64]? {
        tail.entries(after: seq, limit: limit, for: consumer ?? mqtt)?.entries.map(\.seq)
    }

    @Test func `committed entries are returned in order, up to the limit`() {
        let tail = JournalTail(consumers: ["mqtt"])
        tail.append(readings(6...8), after: 5, through: 8)
        tail.append(readings(9...9), after: 8, through: 9)
        #expect(next(tail, after: 5, limit: 2) == [6, 7])
        #expect(tail.position(of: "mqtt") == 7)
        #expect(next(tail, after: 5, limit: 2) == nil, "what all consumers have got is gone")
        #expect(next(tail, after: 7) == [8, 9])
        #expect(next(tail, after: 9) == nil)
    }

    @Test func `each consumer has a position of its own`() {
        let tail = JournalTail(consumers: ["mqtt", "copy"])
        tail.append(readings(1...5), after: 0, through: 5)
        #expect(next(tail, after: 0) == [1, 2, 3, 4, 5])
        #expect(next(tail, after: 0, limit: 3, for: copy) == [1, 2, 3])
        #expect(next(tail, after: 2, limit: 1) == nil, "both have got these")
        #expect(next(tail, after: 3, limit: 1) == [4], "the other has not")
        #expect(next(tail, after: 3, for: copy) == [4, 5])
    }

    @Test func `a consumer of readings gets no events and is complete up to the end`() {
        let tail = JournalTail(consumers: ["mqtt", "copy"])
        tail.append([event(1)] + readings(2...3) + [event(4)], after: 0, through: 4)
        #expect(next(tail, after: 0, for: copy) == [1, 2, 3, 4])
        let batch = tail.entries(after: 0, limit: 2, for: mqtt)
        #expect(batch?.entries.map(\.seq) == [2, 3])
        #expect(batch?.through == 4)
        tail.append([event(5)], after: 4, through: 5)
        #expect(tail.entries(after: 4, limit: 9, for: mqtt) == JournalBatch([], through: 5))
    }

    @Test func `a full batch is complete up to its last entry`() {
        let tail = JournalTail(consumers: ["mqtt"])
        tail.append(readings(1...2) + [event(3)] + readings(4...4), after: 0, through: 4)
        #expect(tail.entries(after: 0, limit: 2, for: mqtt)?.through == 2)
        #expect(tail.entries(after: 2, limit: 2, for: mqtt)?.through == 4)
    }

    @Test func `entries before the tail are read from the file`() {
        let tail = JournalTail(consumers: ["mqtt"])
        #expect(next(tail, after: 0) == nil)
        tail.append(readings(6...8), after: 5, through: 8)
        #expect(next(tail, after: 4) == nil)
        #expect(next(tail, after: 6) == [7, 8])
    }

    @Test func `after a gap in the numbers the tail starts again`() {
        let tail = JournalTail(consumers: ["mqtt"])
        tail.append(readings(1...3), after: 0, through: 3)
        tail.append(readings(6...7), after: 5, through: 7)
        #expect(next(tail, after: 3) == nil)
        #expect(next(tail, after: 5) == [6, 7])
    }

    @Test func `after a reset the tail holds only later entries`() {
        let tail = JournalTail(consumers: ["mqtt"])
        tail.append(readings(1...3), after: 0, through: 3)
        tail.removeAll()
        #expect(next(tail, after: 0) == nil)
        #expect(next(tail, after: 3) == nil)
        tail.append(readings(7...8), after: 6, through: 8)
        #expect(next(tail, after: 3) == nil)
        #expect(next(tail, after: 6) == [7, 8])
    }

    @Test func `a dead consumer costs no memory beyond the capacity, and the others no entry`() {
        let tail = JournalTail(consumers: ["mqtt", "dead"], capacity: JournalReading.test(1).size * 10)
        for seq in 1...100 as ClosedRange<Int64> {
            tail.append(readings(seq...seq), after: seq - 1, through: seq)
            #expect(next(tail, after: seq - 1) == [seq])
        }
        #expect(next(tail, after: 89) == nil)
        #expect(next(tail, after: 90, for: JournalConsumerOptions(name: "dead")) == Array(91...100))
    }

    @Test func `a commit larger than the capacity is read from the file`() {
        let tail = JournalTail(consumers: ["mqtt"], capacity: JournalReading.test(1).size * 10)
        tail.append(readings(1...30), after: 0, through: 30)
        #expect(next(tail, after: 0) == nil)
        #expect(next(tail, after: 20) == Array(21...30))
    }
}
