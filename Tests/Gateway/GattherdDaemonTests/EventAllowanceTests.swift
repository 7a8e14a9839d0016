import GattherdLog
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

/// The rate at which one source may cause events.
@Suite(.timeLimit(.minutes(1))) struct EventAllowanceTests {
    private func source(_ device: String?, _ kind: String = "link", state: String? = nil) -> EventAllowance.Source {
        EventAllowance.Source(device: device, kind: kind, ["state": state.map { .text($0) }])
    }

    @Test func `after a burst one event per five seconds passes with the number left out`() {
        var allowance = EventAllowance()
        let strap = source("strap")
        let burst = (0..<600).compactMap { _ in allowance.admit(strap, at: .zero) }
        #expect(burst == Array(repeating: 0, count: 500))
        #expect(allowance.admit(strap, at: .seconds(4)) == nil)
        #expect(allowance.admit(strap, at: .seconds(5)) == 101)
        #expect(allowance.admit(strap, at: .seconds(6)) == nil)
        #expect(allowance.admit(strap, at: .seconds(100_000)) == 1)
    }

    @Test func `the limit applies to each device, kind and state separately`() {
        var allowance = EventAllowance()
        for _ in 0..<1000 { _ = allowance.admit(source("strap", "control"), at: .zero) }
        for _ in 0..<1000 { _ = allowance.admit(source(nil, "broker", state: "set_not_allowed"), at: .zero) }
        for other in [source("strap"), source("lamp", "control"), source(nil, "broker", state: "connected")] {
            #expect(allowance.admit(other, at: .zero) == 0)
        }
    }

    @Test func `the memory for sources is bounded by the capacity`() {
        var allowance = EventAllowance()
        for number in 0..<20_000 { #expect(allowance.admit(source("d\(number)"), at: .seconds(number)) == 0) }
        #expect(allowance.count <= EventAllowance.capacity)
    }

    @Test func `events above the limit are counted and reported by the next event`() async {
        let clock = Locked(Duration.zero)
        let recorder = EventRecorder(now: { Timestamp(microseconds: 1) }, uptime: { clock.withLock { $0 } })
        for _ in 0..<510 { recorder.record(device: "strap", kind: "control", ["control": .text("led")]) }
        clock.withLock { $0 = .seconds(5) }
        recorder.record(device: "strap", kind: "control", ["control": .text("led")])
        recorder.finish()
        let store = FakeStore()
        await recorder.run(store: store, announcer: nil, log: .silent)
        #expect(recorder.leftOut.value == 10 && recorder.dropped.value == 0)
        let details = await store.events.map(\.detail)
        #expect(details.count == 501)
        #expect(details.last == #"{"control":"led","left_out":10}"#)
    }

    @Test(arguments: [(1, 3, 0), (2, 0, 3)] as [(Int, Int, UInt64)])
    func `events that history refuses at the end are stored, or counted and logged`(
        failures: Int,
        stored: Int,
        lost: UInt64
    ) async {
        let recorder = EventRecorder(now: { Timestamp(microseconds: 1) })
        for _ in 0..<3 { recorder.record(kind: "daemon", ["state": .text("stopped")]) }
        recorder.finish()
        let store = FakeStore()
        await store.failToRecord(failures)
        let errors = Locked<[LogEntry]>([])
        let log = Log(threshold: .error) { entry in errors.withLock { $0.append(entry) } }
        await recorder.run(store: store, announcer: nil, log: log)
        #expect(await store.events.count == stored)
        #expect(recorder.dropped.value == lost)
        #expect(errors.withLock { $0.map(\.fields) } == (lost > 0 ? [[LogField("events", lost)]] : []))
    }
}
