import Testing

@testable import GattherdDelivery

/// The time that acknowledgements have to accumulate.
struct AcknowledgementDelayTests {
    @Test func `few acknowledgements are read as they come`() {
        var delay = AcknowledgementDelay()
        let delays = [delay.delay(for: 7, isCatchingUp: false), delay.delay(for: 7, isCatchingUp: true)]
        #expect(delays == [nil, nil])
        let rest = delay.rest(for: 7, of: 7)
        #expect(rest == nil)
    }

    @Test func `a slow broker gets more time, within limits`() {
        var delay = AcknowledgementDelay()
        let delays = [delay.window(ofWhich: 10), delay.window(ofWhich: 10)]
        #expect(delays[1] > delays[0])
        for _ in 0..<1000 { delay.window(ofWhich: 10) }
        let longest = delay.delay(for: 65_535, isCatchingUp: false)
        #expect(longest == .microseconds(10_200))
    }

    @Test func `a broker that answers in time again gets the first, shorter time`() {
        var delay = AcknowledgementDelay()
        let first = delay.window(ofWhich: 0)
        for _ in 0..<10 { delay.window(ofWhich: 10) }
        for _ in 0..<100 { delay.window(ofWhich: 0) }
        let last = delay.window(ofWhich: 0)
        #expect(last == first)
    }

    @Test func `the rest of a window is awaited once`() {
        var delay = AcknowledgementDelay()
        let whole = delay.window(ofWhich: 5)
        let again = delay.rest(for: 2, of: 5)
        #expect(whole > .zero)
        #expect(again == nil)
    }

    @Test func `a few unanswered readings are not awaited`() {
        var delay = AcknowledgementDelay()
        let delays = [delay.delay(for: 20, isCatchingUp: false), delay.rest(for: 4, of: 20)]
        #expect(delays[0] != nil)
        #expect(delays[1] == nil)
        let later = [delay.delay(for: 20, isCatchingUp: false), delay.rest(for: 5, of: 20)]
        #expect(later[1] != nil)
    }

    @Test func `a backlog does not wait for a slow broker`() {
        var delay = AcknowledgementDelay()
        for _ in 0..<100 { delay.window(ofWhich: 20) }
        let short = delay.delay(for: 100, isCatchingUp: true)
        let rest = delay.rest(for: 40, of: 100)
        #expect(short == .microseconds(150))
        #expect(rest == nil)
    }
}

extension AcknowledgementDelay {
    /// Delays a window of 20 readings, some of them unacknowledged at the first read; returns the delay.
    @discardableResult
    fileprivate mutating func window(ofWhich unacknowledged: Int) -> Duration {
        let delay = delay(for: 20, isCatchingUp: false)
        let rest = rest(for: unacknowledged, of: 20)
        #expect((rest == nil) == (unacknowledged == 0))
        return delay ?? .zero
    }
}
