import GattherdHistory
import GattherdModel
import Testing

@testable import GattherdGateway

@Suite("How long devices are silent") struct SilencesTests {
    private let start = SuspendingClock.now

    private func look(isHere: Bool = false, heard: Int64? = nil) -> LastSeenTracker.Look {
        LastSeenTracker.Look(device: "a", isHere: isHere, heard: heard.map { Timestamp(microseconds: $0) })
    }

    private func record(_ seconds: Int) -> EnrolledDevice {
        EnrolledDevice(device: "a", address: "", rule: "", silence: .seconds(seconds))
    }

    @Test func `The time counts for which nobody hears of a device, and goes on after a restart`() {
        var silences = LastSeenTracker([record(100)], now: start)
        #expect(silences["a"] == .seconds(100) && silences["b"] == .zero)
        for second in [60, 90] {
            silences.note([look()], isListening: true, now: start.advanced(by: .seconds(second)))
            #expect(silences["a"] == .seconds(100 + second))
        }
    }

    @Test func `Time for which nobody listened does not count`() {
        var silences = LastSeenTracker([record(100)], now: start)
        silences.note([look()], isListening: false, now: start.advanced(by: .seconds(60)))
        silences.note([look()], isListening: true, now: start.advanced(by: .seconds(61)))
        #expect(silences["a"] == .seconds(101))
    }

    @Test func `A device that is there, or was heard since the last look, is silent no longer`() {
        var silences = LastSeenTracker([record(100)], now: start)
        let second = { [start] in start.advanced(by: .seconds($0)) }
        silences.note([look(heard: 5)], isListening: true, now: second(60))
        #expect(silences["a"] == .zero)
        silences.note([look(heard: 5)], isListening: true, now: second(70))
        #expect(silences["a"] == .seconds(10))
        // The clock was set back meanwhile.
        silences.note([look(heard: 3)], isListening: true, now: second(80))
        #expect(silences["a"] == .zero)
        silences.note([look(heard: 3)], isListening: true, now: second(90))
        silences.note([look(isHere: true, heard: 3)], isListening: true, now: second(100))
        #expect(silences["a"] == .zero)
    }

    @Test func `Who is not looked at any more begins anew`() {
        var silences = LastSeenTracker([record(100)], now: start)
        silences.note([], isListening: true, now: start)
        #expect(silences["a"] == .zero)
        silences = LastSeenTracker([record(100)], now: start)
        silences.begin("a")
        silences.note([look()], isListening: true, now: start.advanced(by: .seconds(60)))
        #expect(silences["a"] == .seconds(60))
    }
}
