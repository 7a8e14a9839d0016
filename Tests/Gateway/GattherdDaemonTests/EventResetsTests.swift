import GattherdGATT
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdDaemon

/// Events that fall back a while after their last reading.
@Suite(.timeLimit(.minutes(1))) struct EventResetsTests {
    private let start = SuspendingClock.now
    private let binding: StreamBinding

    init() {
        binding = Self.binding(reset: .seconds(60))
    }

    private static func binding(reset: Duration, decoder: Int = 1) -> StreamBinding {
        let metrics = [
            MetricDescriptor(name: "octet", reset: MetricReset(after: reset, value: .integer(0))),
            MetricDescriptor(name: "motion", reset: MetricReset(after: reset, value: .boolean(false))),
            MetricDescriptor(name: "other"),
        ]
        return StreamBinding(
            stream: StreamDefinition(device: "dial", profile: "p", stream: "events", metrics: metrics),
            profile: OctetProfile("p", service: 0xAAAA, characteristic: 0xBBBB),
            characteristic: 0,
            decoder: decoder,
            source: .advert,
            meter: DeviceMeter(),
            echo: nil
        )
    }

    private func time(_ seconds: Int) -> Timestamp { Timestamp(microseconds: Int64(seconds) * 1_000_000) }

    private func record(_ resets: inout EventResets, _ seconds: Int, _ samples: (Int, SampleValue)...) {
        let samples = samples.map { Sample(metric: $0.0, value: $0.1) }
        resets.record(samples[...], of: binding, at: time(seconds), now: start + .seconds(seconds))
    }

    @Test func `an event falls back to its rest value after the holding time, once`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)), (2, .integer(5)))
        #expect(resets.next == start + .seconds(60))
        #expect(resets.removeDue(at: start + .seconds(59)).isEmpty)
        let due = resets.removeDue(at: start + .seconds(60))
        #expect(due.map(\.samples) == [[Sample(metric: 1, value: .boolean(false))]])
        #expect(due.map(\.time) == [time(60)])
        #expect(resets.next == nil)
        #expect(resets.removeDue(at: start + .seconds(600)).isEmpty)
    }

    @Test func `a further event restarts the holding time, and another value ends it`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)))
        record(&resets, 30, (1, .boolean(true)))
        #expect(resets.removeDue(at: start + .seconds(60)).isEmpty)
        #expect(resets.next == start + .seconds(90))
        record(&resets, 70, (2, .integer(1)))
        #expect(resets.next == start + .seconds(90))
        record(&resets, 80, (1, .boolean(false)))
        #expect(resets.next == nil)
        record(&resets, 80, (1, .null))
        #expect(resets.next == nil)
    }

    @Test func `an event of a replaced subscription starts the time again`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)))
        let samples = [Sample(metric: 1, value: .boolean(true))]
        let replaced = Self.binding(reset: .seconds(60))
        resets.record(samples[...], of: replaced, at: time(30), now: start + .seconds(30))
        #expect(resets.removeDue(at: start + .seconds(60)).isEmpty)
        #expect(resets.next == start + .seconds(90))
    }

    @Test func `events of one time are one reading`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)), (0, .integer(7)))
        let due = resets.removeDue(at: start + .seconds(61))
        let samples = [Sample(metric: 0, value: .integer(0)), Sample(metric: 1, value: .boolean(false))]
        #expect(due.map(\.samples) == [samples])
    }

    @Test func `events of a decoder that has ended do not fall back`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)))
        resets.remove(decoders: [2])
        #expect(resets.next != nil)
        resets.remove(decoders: [1])
        #expect(resets.next == nil)
    }

    @Test func `the fall-back is stored like a value of the device`() async {
        let (intake, store) = (Intake(), FakeStore())
        let recorder = EventRecorder(now: { Timestamp(microseconds: 1) })
        let ingest = Ingest(intake: intake, store: store, commitInterval: .zero, recorder: recorder, log: .silent)
        let binding = Self.binding(reset: .milliseconds(20))
        async let ingesting: Void = ingest.run()
        intake.receive([7], for: binding, at: time(1))
        await store.wait { $0.readings.count == 2 }
        intake.finish()
        await ingesting
        #expect(await store.readings.map(\.values) == [[.integer(7)], [.integer(0)]])
        #expect(await store.readings.map(\.source) == [.advert, .advert])
        #expect(binding.meter.readings == 2)
    }
}
