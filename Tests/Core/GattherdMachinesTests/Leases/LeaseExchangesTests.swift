import Testing

@testable import GattherdMachines

@Suite struct LeaseExchangesTests {
    private var exchanges = LeaseExchanges(LeaseMachine.Policy(), at: .zero)

    @Test mutating func `one exchange is pending at a time, and the next waits for the pause`() {
        #expect(exchanges.isDue(after: .seconds(2), at: .zero))
        let ticket = exchanges.start([], at: .zero)
        #expect(!exchanges.isDue(after: .seconds(2), at: .seconds(60)))
        _ = exchanges.answered(ticket)
        #expect(!exchanges.isDue(after: .seconds(2), at: .seconds(1)))
        #expect(exchanges.isDue(after: .seconds(2), at: .seconds(2)))
    }

    @Test mutating func `the pause grows with each failure up to its limit, and an answer ends it`() {
        var pauses: [Int] = []
        var now = 0
        for _ in 0..<6 {
            let ticket = exchanges.start([], at: .seconds(now))
            _ = exchanges.failed(ticket)
            let start = now
            while !exchanges.isDue(after: .zero, at: .seconds(now)) { now += 1 }
            pauses.append(now - start)
        }
        #expect(pauses == [1, 2, 4, 8, 10, 10])
        _ = exchanges.answered(exchanges.start([], at: .seconds(now)))
        #expect(exchanges.isDue(after: .zero, at: .seconds(now)))
    }

    @Test mutating func `answers to other exchanges than the pending one change nothing`() {
        let first = exchanges.start([], at: .zero)
        exchanges.cancel()
        let second = exchanges.start([], at: .seconds(1))
        let late = [exchanges.answered(first), exchanges.failed(first)].compactMap(\.self)
        #expect(late.isEmpty && exchanges.isPending && exchanges.contact == nil)
        let answered = exchanges.answered(second)
        #expect(answered?.sent == .seconds(1) && exchanges.contact == .seconds(1))
    }

    @Test mutating func `the centre is returning for 15 s after it was away, also after a start without it`() {
        _ = exchanges.answered(exchanges.start([], at: .seconds(15)))
        #expect(exchanges.isReturning(at: .seconds(29)) && !exchanges.isReturning(at: .seconds(30)))
        _ = exchanges.answered(exchanges.start([], at: .seconds(29)))
        #expect(!exchanges.isReturning(at: .seconds(30)))
        _ = exchanges.answered(exchanges.start([], at: .seconds(44)))
        #expect(exchanges.isReturning(at: .seconds(58)))
    }

    @Test mutating func `a gateway is cut off at the start, and later after the duration of a lease`() {
        #expect(!exchanges.isCut(at: .seconds(9)) && exchanges.isCut(at: .seconds(10)))
        _ = exchanges.answered(exchanges.start([], at: .seconds(20)))
        #expect(!exchanges.isContactDue(at: .seconds(29)) && exchanges.isContactDue(at: .seconds(30)))
        #expect(!exchanges.isCut(at: .seconds(50)), "it may have been suspended")
        _ = exchanges.failed(exchanges.start([], at: .seconds(30)))
        #expect(!exchanges.isCut(at: .seconds(49)) && exchanges.isCut(at: .seconds(50)))
    }
}
