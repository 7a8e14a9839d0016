import Testing

@testable import GattherdDelivery

/// The time that acknowledgements have to accumulate.
struct AcknowledgementDelayTests {
    @Test func `few acknowledgements are read as they come`() {
        #expect(AcknowledgementDelay().delay(for: 7, isCatchingUp: false) == nil)
        #expect(AcknowledgementDelay().delay(for: 7, isCatchingUp: true) == nil)
    }

    @Test func `a slow broker gets more time, within limits`() throws {
        var delay = AcknowledgementDelay()
        let first = try #require(delay.delay(for: 20, isCatchingUp: false))
        delay.adapt(isComplete: false)
        #expect(try #require(delay.delay(for: 20, isCatchingUp: false)) > first)
        for _ in 0..<1000 { delay.adapt(isComplete: false) }
        #expect(delay.delay(for: 65_535, isCatchingUp: false) == .microseconds(10_200))
    }

    @Test func `a broker that answers in time gets less time again`() throws {
        var delay = AcknowledgementDelay()
        let first = delay.delay(for: 20, isCatchingUp: false)
        for _ in 0..<10 { delay.adapt(isComplete: false) }
        for _ in 0..<100 { delay.adapt(isComplete: true) }
        #expect(delay.delay(for: 20, isCatchingUp: false) == first)
    }

    @Test func `a backlog does not wait for a slow broker`() {
        var delay = AcknowledgementDelay()
        for _ in 0..<100 { delay.adapt(isComplete: false) }
        #expect(delay.delay(for: 100, isCatchingUp: true) == .microseconds(150))
    }
}
