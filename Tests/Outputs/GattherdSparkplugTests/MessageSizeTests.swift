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
}
