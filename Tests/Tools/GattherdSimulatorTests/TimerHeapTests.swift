import Testing

@testable import GattherdSimulator

@Suite struct TimerHeapTests {
    @Test func `timers fire by time, and equal times in insertion order`() {
        var heap = TimerHeap<Int>()
        let seconds = [5, 3, 9, 3, 1, 9, 2, 3]
        for (index, second) in seconds.enumerated() { heap.insert(index, at: .seconds(second)) }
        #expect(heap.next == .seconds(1))
        var taken: [Int] = []
        while let (element, due) = heap.removeDue(.seconds(5)) {
            #expect(due == .seconds(seconds[element]))
            taken.append(element)
        }
        #expect(taken == [4, 6, 1, 3, 7, 0])
        #expect(heap.next == .seconds(9))
    }
}
