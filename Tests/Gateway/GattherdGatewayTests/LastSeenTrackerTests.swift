import GattherdHistory
import GattherdModel
import Testing

@testable import GattherdGateway

@Suite struct SilencesTests {
    private let start = SuspendingClock.now

    private func observation(isReady: Bool = false, heard: Int64? = nil) -> LastSeenTracker.Observation {
        LastSeenTracker.Observation(device: "a", isReady: isReady, heard: heard.map { Timestamp(microseconds: $0) })
    }

    private func record(_ seconds: Int) -> EnrolledDevice {
        EnrolledDevice(device: "a", address: "", rule: "", silence: .seconds(seconds))
    }

    @Test func `the time without a sighting continues after a restart`() {
        var tracker = LastSeenTracker([record(100)], now: start)
        #expect(tracker["a"] == .seconds(100) && tracker["b"] == .zero)
        for second in [60, 90] {
            tracker.record([observation()], isListening: true, now: start.advanced(by: .seconds(second)))
            #expect(tracker["a"] == .seconds(100 + second))
        }
    }

    @Test func `time without a listening adapter does not count`() {
        var tracker = LastSeenTracker([record(100)], now: start)
        tracker.record([observation()], isListening: false, now: start.advanced(by: .seconds(60)))
        tracker.record([observation()], isListening: true, now: start.advanced(by: .seconds(61)))
        #expect(tracker["a"] == .seconds(101))
    }

    @Test func `a ready device or a new sighting resets the time`() {
        var tracker = LastSeenTracker([record(100)], now: start)
        let second = { [start] in start.advanced(by: .seconds($0)) }
        tracker.record([observation(heard: 5)], isListening: true, now: second(60))
        #expect(tracker["a"] == .zero)
        tracker.record([observation(heard: 5)], isListening: true, now: second(70))
        #expect(tracker["a"] == .seconds(10))
        // The clock was set back meanwhile.
        tracker.record([observation(heard: 3)], isListening: true, now: second(80))
        #expect(tracker["a"] == .zero)
        tracker.record([observation(heard: 3)], isListening: true, now: second(90))
        tracker.record([observation(isReady: true, heard: 3)], isListening: true, now: second(100))
        #expect(tracker["a"] == .zero)
    }

    @Test func `a device without observation starts again`() {
        var tracker = LastSeenTracker([record(100)], now: start)
        tracker.record([], isListening: true, now: start)
        #expect(tracker["a"] == .zero)
        tracker = LastSeenTracker([record(100)], now: start)
        tracker.reset("a")
        tracker.record([observation()], isListening: true, now: start.advanced(by: .seconds(60)))
        #expect(tracker["a"] == .seconds(60))
    }
}
