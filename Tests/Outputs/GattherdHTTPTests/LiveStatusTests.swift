import GattherdModel
import Testing

@testable import GattherdHTTP

@Suite struct LiveStatusTests {
    private let board = LiveStatus()
    private let stream = LiveFixtures.stream()

    private func values(_ streams: [LiveStream]) -> [[SampleValue?]] { streams.map(\.values) }

    @Test func `The newest value of each metric is kept, of a repeated one its last element`() {
        let samples = [
            Sample(metric: 0, value: .integer(72)), Sample(metric: 2, value: .real(0.8)),
            Sample(metric: 2, value: .real(0.9)),
        ]
        board.observe(LiveFixtures.batch(stream, samples))
        board.observe(LiveFixtures.batch(stream, [Sample(metric: 1, value: .boolean(true))]))
        #expect(values(board.picture.streams) == [[.integer(72), .boolean(true), .real(0.9)]])
    }

    @Test func `News are told once; what changed several times is told as it is now`() {
        for rate in [72, 73] {
            board.observe(LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(Int64(rate)))]))
        }
        board.update(LiveFixtures.link("strap", .connecting))
        board.update(LiveFixtures.link("strap", .ready))
        board.describe(LiveFixtures.description)
        board.announce(LifecycleEvent(time: LiveFixtures.time, kind: "daemon", [:]))
        let news = board.look(wantsPicture: false).news
        #expect(values(news.streams) == [[.integer(73), nil, nil]])
        #expect(news.links == [LiveFixtures.link("strap", .ready)])
        #expect(news.devices == ["strap"])
        #expect(news.events.map(\.kind) == ["daemon"])
        let (later, picture) = board.look(wantsPicture: true)
        #expect(later.streams.isEmpty && later.links.isEmpty && later.devices.isEmpty && later.events.isEmpty)
        #expect(picture?.streams.count == 1 && picture?.links.count == 1 && picture?.events.count == 1)
    }

    @Test func `A description that says the same again is no news`() {
        board.describe(LiveFixtures.description)
        _ = board.look(wantsPicture: false)
        board.describe(LiveFixtures.description)
        #expect(board.look(wantsPicture: false).news.devices.isEmpty)
    }

    @Test func `A stream that a device does not have any more is forgotten`() {
        let samples = [Sample(metric: 0, value: .integer(72))]
        for device in ["strap", "other"] { board.observe(LiveFixtures.batch(LiveFixtures.stream(device), samples)) }
        board.describe(LiveFixtures.description)
        #expect(board.picture.streams.count == 2)
        var description = LiveFixtures.description
        description.streams = []
        board.describe(description)
        #expect(board.picture.streams.map(\.stream.device) == ["other"])
    }

    @Test func `A stream whose profile was chosen anew takes the place of the old one`() {
        board.observe(LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(72))]))
        let other = LiveFixtures.stream(metrics: [MetricDescriptor(name: "other")])
        board.observe(LiveFixtures.batch(other, [Sample(metric: 0, value: .null)]))
        #expect(board.picture.streams.map { $0.stream.metrics.map(\.name) } == [["other"]])
    }

    @Test func `However many events come, the last two hundred are kept`() {
        for number in 0..<1000 {
            board.announce(LifecycleEvent(time: LiveFixtures.time, kind: "k\(number)", [:]))
        }
        #expect(board.picture.events.map(\.kind) == (800..<1000).map { "k\($0)" })
        #expect(board.look(wantsPicture: false).news.events.count == 200)
    }

    @Test func `Links that become ready and that fail are counted, each change once`() {
        for state in [LinkState.ready, .ready, .backingOff, .backingOff, .connecting, .ready] {
            board.update(LiveFixtures.link("strap", state, state == .backingOff ? .remote : nil))
        }
        board.update(LiveFixtures.link("dial", .failed, .authentication))
        #expect(board.linkCounts.ready == ["strap": 2, "dial": 0])
        #expect(board.linkCounts.failures == [.remote: 1, .authentication: 1])
    }

    @Test func `Nothing is left of a device that has been removed`() {
        board.observe(LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(72))]))
        board.update(LiveFixtures.link("strap", .ready))
        board.describe(LiveFixtures.description)
        board.remove(device: "strap")
        let picture = board.picture
        #expect(picture.streams.isEmpty && picture.links.isEmpty && picture.descriptions.isEmpty)
        #expect(board.look(wantsPicture: false).news.links.isEmpty)
    }

    private struct BrokenStore: ReadingStore {
        func append(_ batch: ReadingBatch) async throws(StoreFault) { throw StoreFault("full", .full) }
        func replayMarks() async throws(StoreFault) -> [String: UInt32] { [:] }
        func record(_ events: [LifecycleEvent]) async throws(StoreFault) {}
        func note(_ device: DeviceRecord, seenAt: Timestamp) async throws(StoreFault) {}
        func setHeld(_ device: String, _ isHeld: Bool) async throws(StoreFault) {}
        func heldDevices() async throws(StoreFault) -> Set<String> { [] }
    }

    @Test func `What history does not take is not shown`() async {
        let store = LiveStore(BrokenStore(), board: board)
        let batch = LiveFixtures.batch(stream, [Sample(metric: 0, value: .integer(72))])
        await #expect(throws: StoreFault.self) { try await store.append(batch) }
        #expect(board.picture.streams.isEmpty)
    }
}
