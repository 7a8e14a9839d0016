import GattherdModel
import Testing

@testable import GattherdSparkplug

/// The metrics of a sensor whose format defines many more than the sensor sends.
@Suite struct DeviceMetricsTests {
    private let stream = StreamDefinition(
        device: "tag",
        profile: "open",
        stream: "open",
        metrics: (0..<500).map { MetricDescriptor(name: "m\($0)") },
        isOpen: true
    )

    private func reading(_ metrics: Int...) -> JournalReading {
        let samples = metrics.map { Sample(metric: $0, value: .integer(Int64($0))) }
        let time = Timestamp(microseconds: 1_000_000)
        return JournalReading(seq: 1, stream: stream, time: time, source: .advert, samples: samples[...])
    }

    @Test func `a device has only the metrics of an open format that it sends`() {
        var (metrics, aliases) = (DeviceMetrics(), AliasPool())
        let changes = [reading(499, 7), reading(7, 499), reading(3)].map { metrics.learn($0, &aliases) }
        #expect(changes == [true, false, true])
        #expect(metrics.metrics.map(\.name) == ["open/m499", "open/m7", "open/m3"])
        let groups = metrics.record(reading(3, 499), isHistorical: false, at: Timestamp(microseconds: 1_000_000))
        #expect(groups.map(\.values) == [[.integer(3)], [.integer(499)]])
        #expect(metrics.metrics.map(\.values) == [[.integer(499)], [], [.integer(3)]])
    }

    @Test func `described metrics stay when the device sends others`() {
        var (metrics, aliases) = (DeviceMetrics(), AliasPool())
        let described = DeviceDescription.Stream(name: "open", metrics: [stream.metrics[7]])
        let description = DeviceDescription(device: "tag", address: "C0:FF:EE:00:00:01", streams: [described])
        let changes = [metrics.describe(description, &aliases), metrics.learn(reading(7, 8), &aliases)]
        #expect(changes == [true, true])
        #expect(metrics.metrics.map(\.name) == ["open/m7", "open/m8"])
    }

    /// A description of the open format with these metrics.
    private func description(_ metrics: Int..., isConnectable: Bool) -> DeviceDescription {
        let described = DeviceDescription.Stream(name: "open", metrics: metrics.map { stream.metrics[$0] })
        let address = "C0:FF:EE:00:00:01"
        return DeviceDescription(device: "tag", address: address, streams: [described], isConnectable: isConnectable)
    }

    @Test func `a sensor keeps the metrics that it has sent when a new description lacks them`() {
        var (metrics, aliases) = (DeviceMetrics(), AliasPool())
        _ = metrics.learn(reading(7, 8), &aliases)
        _ = metrics.record(reading(7, 8), isHistorical: false, at: Timestamp(microseconds: 1_000_000))
        let isChanged = metrics.describe(description(8, isConnectable: false), &aliases)
        #expect(!isChanged && metrics.metrics.map(\.name) == ["open/m8", "open/m7"])
        #expect(metrics.metrics.map(\.values) == [[.integer(8)], [.integer(7)]])
        _ = metrics.describe(description(8, isConnectable: true), &aliases)
        #expect(metrics.metrics.map(\.name) == ["open/m8"])
    }

    @Test func `a metric that a description has dropped returns with its alias and its type`() {
        var (metrics, aliases) = (DeviceMetrics(), AliasPool())
        let text = JournalReading(
            seq: 1,
            stream: stream,
            time: Timestamp(microseconds: 1_000_000),
            source: .advert,
            samples: [Sample(metric: 7, value: .text("high"))][...]
        )
        _ = metrics.describe(description(7, isConnectable: true), &aliases)
        _ = metrics.learn(text, &aliases)
        let former = metrics.metrics
        _ = metrics.describe(description(8, isConnectable: true), &aliases)
        _ = metrics.describe(description(7, 8, isConnectable: true), &aliases)
        #expect(former.map(\.type) == [.text] && metrics.metrics.first == former.first)
        _ = metrics.describe(description(8, isConnectable: true), &aliases)
        _ = metrics.learn(reading(7), &aliases)
        #expect(metrics.metrics.last == former.first)
    }

    @Test func `readings of one batch may have different definitions of a stream`() {
        var (metrics, aliases) = (DeviceMetrics(), AliasPool())
        let now = Timestamp(microseconds: 1_000_000)
        let readings = [["a", "b"], ["c"], ["b", "a"]].map { names in
            let stored = StreamDefinition(
                device: "tag",
                profile: "open",
                stream: "open",
                metrics: names.map { MetricDescriptor(name: $0) }
            )
            let samples = names.indices.map { Sample(metric: $0, value: .text(names[$0])) }
            return JournalReading(seq: 1, stream: stored, time: now, source: .advert, samples: samples[...])
        }
        for reading in readings { _ = metrics.learn(reading, &aliases) }
        let groups = readings.map { metrics.record($0, isHistorical: true, at: now) }
        #expect(metrics.metrics.map(\.name) == ["open/a", "open/b", "open/c"])
        #expect(groups.map { $0.map(\.index) } == [[0, 1], [2], [1, 0]])
        #expect(metrics.metrics.map(\.values) == [[.text("a")], [.text("b")], [.text("c")]])
    }
}
