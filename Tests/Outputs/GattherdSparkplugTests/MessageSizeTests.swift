import GattherdModel
import Testing

@testable import GattherdSparkplug

/// The sizes of DDATA in virtual time.
@Suite struct MessageSizeTests {
    private static let limit = 16 << 10

    @Test func `values of an outage, and the current ones after them, are in messages of at most 16 KiB`() {
        let texts = StreamDefinition(
            device: "strap",
            profile: "texts",
            stream: "texts",
            metrics: (0..<5).map { MetricDescriptor(name: "text-\($0)", kind: .state) }
        )
        let text = SampleValue.text(String(repeating: "x", count: 5000))
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.lose()
        bench.commit(texts, text, text, text, text, text)
        bench.forgetMessages()
        bench.wait(.seconds(20))
        let data = bench.messages("DDATA")
        #expect(data.allSatisfy { $0.payload.encoded.count <= Self.limit })
        let values = data.flatMap(\.payload.metrics)
        #expect(values.map(\.isHistorical) == [Bool](repeating: true, count: 5) + [Bool](repeating: false, count: 5))
        let seqs = bench.messages.compactMap(\.seq)
        #expect(seqs.elementsEqual(0..<UInt64(seqs.count)))
    }

    @Test func `a value that is longer than a message may be is sent by itself`() {
        var bench = MachineBench()
        bench.connect(Devices.strap)
        bench.lose()
        let long = SampleValue.text(String(repeating: "x", count: 20_000))
        for (second, value) in [SampleValue.text("a"), long, .text("b")].enumerated() {
            bench.commit(Devices.contact, value, at: Int64(second))
        }
        bench.forgetMessages()
        bench.wait(.seconds(20))
        let historical = bench.messages("DDATA").filter { $0.payload.metrics.contains(where: \.isHistorical) }
        #expect(historical.map(\.payload.metrics.count) == [1, 1, 1])
    }

    @Test func `a value that the broker did not accept counts as new when it comes again`() throws {
        var bench = MachineBench(isByException: true)
        bench.connect(Devices.strap)
        for second in Int64(1)...2 { bench.commit(Devices.contact, .text("on"), at: second) }
        #expect(bench.messages("DDATA").count == 1)
        let alias = try #require(bench.messages("DDATA").first?.payload.metrics.first?.alias)
        bench.send(.unpublished(device: "strap", aliases: [alias]))
        for second in Int64(3)...4 { bench.commit(Devices.contact, .text("on"), at: second) }
        #expect(bench.messages("DDATA").count == 2)
    }

    @Test func `the values that hosts miss are the current ones that a shorter message lacks`() {
        let metrics = [
            SparkplugMetric(alias: 1, value: .long(1)), SparkplugMetric(alias: 2, value: .string("x")),
            SparkplugMetric(alias: 3, isHistorical: true, value: .string("x")),
        ]
        let topic = MachineBench.topics.deviceData("strap")
        let message = SparkplugMessage(topic: topic, payload: SparkplugPayload(metrics: metrics))
        #expect(message.aliases(missingIn: message.withoutTexts) == [2])
        #expect(message.aliases(missingIn: message.withoutMetrics) == [1, 2])
    }
}
