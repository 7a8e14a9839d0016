import GattherdSync
import GattherdTransducer
import Testing

@testable import TransducerExamples

@Suite(.timeLimit(.minutes(1))) struct ThrottleTests {
    private var throttle = Throttle<Int>(interval: .milliseconds(100), echoTimeout: .seconds(1))

    private mutating func at(_ milliseconds: Int, _ event: Throttle<Int>.Event) -> [Throttle<Int>.Effect] {
        throttle.handle(event, at: .milliseconds(milliseconds))
    }

    @Test mutating func `of the values set during a write only the last is written`() {
        #expect(at(0, .set(1)) == [.write(1)])
        #expect(at(10, .set(2)) == [])
        #expect(at(20, .set(3)) == [])
        #expect(at(30, .written) == [])
        #expect(throttle.deadline == .milliseconds(100))
        #expect(at(100, .tick) == [.write(3)])
        #expect(at(110, .written) == [])
        #expect(throttle.output == 3)
    }

    @Test mutating func `writes never overlap`() {
        #expect(at(0, .set(1)) == [.write(1)])
        #expect(at(500, .set(2)) == [])
        #expect(throttle.deadline == nil)
        #expect(at(600, .written) == [.write(2)])
    }

    @Test mutating func `a value that the device has is not written`() {
        #expect(at(0, .observed(7)) == [])
        #expect(at(1, .set(7)) == [])
        #expect(throttle.output == 7)
        #expect(throttle.deadline == nil)
    }

    @Test mutating func `the shown value does not jump back until the echo`() {
        _ = at(0, .observed(1))
        #expect(at(1, .set(9)) == [.write(9)])
        _ = at(2, .observed(5))
        #expect(throttle.output == 9)
        _ = at(3, .written)
        _ = at(4, .observed(6))
        #expect(throttle.output == 9)
        _ = at(5, .observed(9))
        #expect(throttle.deadline == nil)
        _ = at(6, .observed(4))
        #expect(throttle.output == 4)
    }

    @Test mutating func `without an echo the device's value is shown after the timeout`() {
        _ = at(0, .observed(1))
        _ = at(0, .set(9))
        _ = at(10, .written)
        _ = at(20, .observed(8))
        #expect(throttle.deadline == .milliseconds(1010))
        #expect(throttle.output == 9)
        _ = at(1010, .tick)
        #expect(throttle.output == 8)
    }

    @Test mutating func `an echo may come before the confirmation`() {
        _ = at(0, .set(9))
        _ = at(1, .observed(9))
        _ = at(2, .written)
        _ = at(3, .observed(4))
        #expect(throttle.output == 4)
    }

    @Test mutating func `a late echo of an earlier write is suppressed`() {
        _ = at(0, .observed(1))
        _ = at(0, .set(2))
        _ = at(1, .written)
        #expect(at(100, .set(1)) == [.write(1)])
        _ = at(101, .written)
        _ = at(102, .observed(2))
        #expect(throttle.output == 1)
    }

    @Test mutating func `after a failed write the device's value is shown again`() {
        _ = at(0, .observed(1))
        _ = at(0, .set(2))
        #expect(throttle.output == 2)
        #expect(at(1, .failed) == [])
        #expect(throttle.output == 1)
        #expect(at(200, .set(2)) == [.write(2)])
    }

    @Test mutating func `after a failed write the shown value is written again, because the device may have another`() {
        _ = at(0, .observed(1))
        _ = at(0, .set(2))
        _ = at(1, .failed)
        #expect(at(200, .set(1)) == [.write(1)])
        _ = at(201, .failed)
        _ = at(202, .observed(1))
        #expect(at(400, .set(1)) == [])
    }

    @Test mutating func `after a write without an echo the value reported before is written again`() {
        _ = at(0, .observed(1))
        _ = at(0, .set(2))
        _ = at(1, .written)
        #expect(at(1001, .tick) == [])
        #expect(throttle.output == 1)
        #expect(at(1002, .set(1)) == [.write(1)])
    }

    @Test func `the slider maps 0 to 1 onto 0 to 255`() {
        var slider = NumberSlider()
        #expect(slider.handle(.moved(ratio: 0.5), at: .zero) == [.write(128)])
        #expect(slider.output == 128.0 / 255)
        slider = NumberSlider()
        #expect(slider.handle(.moved(ratio: 7), at: .zero) == [.write(255)])
        _ = slider.handle(.written, at: .zero)
        _ = slider.handle(.notified(255), at: .zero)
        _ = slider.handle(.notified(0), at: .zero)
        #expect(slider.output == 0)
        #expect(slider.handle(.moved(ratio: .nan), at: .zero) == [])
        #expect(slider.output == 0)
    }

    @Test func `a fast drag of the slider writes its first and its last position`() async throws {
        let (clock, written) = (VirtualClock(), LatestValue<[UInt8]>([]))
        let runner = slider(clock: clock) { byte in written.update { $0.append(byte) } }
        let run = Task { await runner.run() }
        defer { run.cancel() }
        try runner.send(.moved(ratio: 0))
        for step in 1...100 { try runner.send(.moved(ratio: Double(step) / 100)) }
        for await bytes in written.watch() where bytes == [0] { break }
        await clock.advance(to: .milliseconds(100))
        for await bytes in written.watch() where bytes.count == 2 { break }
        #expect(written.state == [0, 255])
        #expect(runner.output == 1)
    }
}
