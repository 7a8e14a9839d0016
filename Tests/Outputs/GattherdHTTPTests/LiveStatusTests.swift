import GattherdModel
import Testing

@testable import GattherdHTTP

@Suite struct LiveStatusTests {
    private let live = LiveStatus()
    private let stream = LiveFixtures.stream()

    /// The values of all metrics of each stream.
    private func values(_ streams: [LiveStream]) -> [[SampleValue?]] {
        streams.map { live in
            live.stream.metrics.map { metric in live.values.first { $0.metric == metric }?.value }
        }
    }

    @Test func `the newest value of each metric is kept, of a list the last element`() {
        let samples = [
            Sample(metric: 0, value: .integer(72)), Sample(metric: 2, value: .real(0.8)),
            Sample(metric: 2, value: .real(0.9)),
        ]
        live.observe(LiveFixtures.batch(stream, samples))
        live.observe(LiveFixtures.batch(stream, [Sample(metric: 1, value: .boolean(true))]))
        #expect(values(live.snapshot.streams) == [[.integer(72), .boolean(true), .real(0.9)]])
        let names = live.snapshot.streams.map { $0.values.map(\.metric.name) }
        #expect(names == [["heart_rate", "sensor_contact", "rr_interval"]])
    }

    @Test func `alerts see the newest values, but none that was received late`() {
        live.observe(LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(72))]))
        #expect(live.newestValues.map { $0.value } == [.integer(72)])
        #expect(live.newestValues.map { $0.metric.name } == ["heart_rate"])
        var late = LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(60))])
        late.readings[0].isPast = true
        live.observe(late)
        #expect(live.newestValues.isEmpty)
        live.observe(LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(73))]))
        #expect(live.newestValues.map { $0.value } == [.integer(73)])
    }

    @Test func `changes are reported once, with the newest state`() {
        for rate in [72, 73] {
            live.observe(LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(Int64(rate)))]))
        }
        live.update(LiveFixtures.link("strap", .connecting))
        live.update(LiveFixtures.link("strap", .ready))
        live.describe(LiveFixtures.description)
        live.announce(LifecycleEvent(time: LiveFixtures.time, kind: "daemon", [:]))
        let changes = live.drainChanges(wantsSnapshot: false).changes
        #expect(values(changes.streams) == [[.integer(73), nil, nil]])
        #expect(changes.links == [LiveFixtures.link("strap", .ready)])
        #expect(changes.devices == ["strap"])
        #expect(changes.events.map(\.kind) == ["daemon"])
        let (later, snapshot) = live.drainChanges(wantsSnapshot: true)
        #expect(later.streams.isEmpty && later.links.isEmpty && later.devices.isEmpty && later.events.isEmpty)
        #expect(snapshot?.streams.count == 1 && snapshot?.links.count == 1 && snapshot?.events.count == 1)
    }

    @Test func `an equal description is not a change`() {
        live.describe(LiveFixtures.description)
        _ = live.drainChanges(wantsSnapshot: false)
        live.describe(LiveFixtures.description)
        #expect(live.drainChanges(wantsSnapshot: false).changes.devices.isEmpty)
    }

    @Test func `a stream that a device no longer has is removed`() {
        let samples = [Sample(metric: 0, value: .integer(72))]
        for device in ["strap", "other"] { live.observe(LiveFixtures.batch(LiveFixtures.stream(device), samples)) }
        live.describe(LiveFixtures.description)
        #expect(live.snapshot.streams.count == 2)
        var description = LiveFixtures.description
        description.streams = []
        live.describe(description)
        #expect(live.snapshot.streams.map(\.stream.device) == ["other"])
    }

    @Test func `values of a former profile are removed when the device is described with another`() {
        for device in ["strap", "other"] {
            let samples = [Sample(metric: 0, value: .integer(72))]
            live.observe(LiveFixtures.batch(LiveFixtures.stream(device), samples))
        }
        var description = LiveFixtures.description
        description.profiles = ["vendor-heart-rate"]
        live.describe(description)
        #expect(live.snapshot.streams.map(\.stream.device) == ["other"])
    }

    @Test(arguments: ["heart-rate", "vendor-heart-rate"])
    func `a stream of a newly selected profile replaces the old one of its name`(profile: String) {
        live.observe(LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(72))]))
        let other = LiveFixtures.stream(profile: profile, metrics: [MetricDescriptor(name: "other")])
        live.observe(LiveFixtures.batch(other, [Sample(metric: 0, value: .null)]))
        #expect(live.snapshot.streams.map { $0.stream.metrics.map(\.name) } == [["other"]])
    }

    @Test func `the last two hundred events are kept`() {
        for number in 0..<1000 {
            live.announce(LifecycleEvent(time: LiveFixtures.time, kind: "k\(number)", [:]))
        }
        #expect(live.snapshot.events.map(\.kind) == (800..<1000).map { "k\($0)" })
        #expect(live.drainChanges(wantsSnapshot: false).changes.events.count == 200)
    }

    @Test func `links that become ready and that fail are counted`() {
        for state in [LinkState.ready, .ready, .backingOff, .backingOff, .connecting, .ready] {
            live.update(LiveFixtures.link("strap", state, state == .backingOff ? .remote : nil))
        }
        live.update(LiveFixtures.link("dial", .failed, .authentication))
        #expect(live.linkCounts.ready == ["strap": 2, "dial": 0])
        #expect(live.linkCounts.failures == [.remote: 1, .authentication: 1])
    }

    @Test func `a removed device leaves nothing behind`() {
        live.observe(LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(72))]))
        live.update(LiveFixtures.link("strap", .ready))
        live.describe(LiveFixtures.description)
        live.remove(device: "strap")
        let snapshot = live.snapshot
        #expect(snapshot.streams.isEmpty && snapshot.links.isEmpty && snapshot.descriptions.isEmpty)
        #expect(live.drainChanges(wantsSnapshot: false).changes.links.isEmpty)
    }

    private struct BrokenStore: ReadingStore {
        func append(_ batch: ReadingBatch) async throws(StoreFault) -> Bool { throw StoreFault("full", .full) }
        func replayMarks() async throws(StoreFault) -> [String: UInt32] { [:] }
        func recordCursors() async throws(StoreFault) -> [RecordCursor] { [] }
        func record(_ events: [LifecycleEvent]) async throws(StoreFault) {}
        func record(_ device: DeviceRecord, seenAt: Timestamp) async throws(StoreFault) {}
        func setHeld(_ device: String, _ isHeld: Bool) async throws(StoreFault) {}
        func heldDevices() async throws(StoreFault) -> Set<String> { [] }
    }

    @Test func `readings that history does not store are not shown`() async {
        let store = LiveStore(BrokenStore(), live: live)
        let batch = LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(72))])
        await #expect(throws: StoreFault.self) { try await store.append(batch) }
        #expect(live.snapshot.streams.isEmpty)
    }
}
