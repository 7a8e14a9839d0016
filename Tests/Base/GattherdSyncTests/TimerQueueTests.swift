import GattherdMachines
import Testing

@testable import GattherdSync

@Suite struct TimerQueueTests {
    private let start = SuspendingClock.now

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `timers are due in order after any sets and cancellations`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var queue = TimerQueue()
        var expected: [(Int, UInt64)] = []
        var fired: [UInt64] = []
        for _ in 0..<500 {
            let delay = Int.random(in: 0..<100, using: &random)
            let id = queue.nextID
            _ = queue.insert(start.advanced(by: .milliseconds(delay))) { fired.append(id) }
            expected.append((delay, id))
            if Bool.random(using: &random), let index = expected.indices.randomElement(using: &random) {
                queue.remove(expected.remove(at: index).1)
            }
        }
        #expect(queue.count == expected.count)
        while let action = queue.removeDue(at: start.advanced(by: .seconds(1)), before: .max) { action() }
        #expect(fired == expected.sorted { $0 < $1 }.map(\.1))
        #expect(queue.nextDeadline() == nil)
    }

    @Test func `a timer is not due before its deadline or in the turn that set it`() {
        var queue = TimerQueue()
        _ = queue.insert(start.advanced(by: .seconds(1))) {}
        #expect(queue.removeDue(at: start, before: .max) == nil)
        #expect(queue.removeDue(at: start.advanced(by: .seconds(1)), before: 0) == nil)
        #expect(queue.removeDue(at: start.advanced(by: .seconds(1)), before: 1) != nil)
    }

    @Test func `a cancelled timer is not a deadline`() {
        var queue = TimerQueue()
        let early = queue.insert(start) {}
        _ = queue.insert(start.advanced(by: .seconds(5))) {}
        queue.remove(early)
        #expect(queue.nextDeadline() == start.advanced(by: .seconds(5)))
    }
}
