import GattherdModel
import Testing

@Suite struct ReadingJSONTests {
    private let stream = StreamDefinition(
        device: "strap",
        profile: "heart-rate",
        stream: "heart_rate",
        metrics: [
            MetricDescriptor(name: "heart_rate", unit: "bpm"),
            MetricDescriptor(name: "sensor_contact", kind: .state),
            MetricDescriptor(name: "rr_interval", unit: "s", isRepeated: true),
            MetricDescriptor(name: "quoted \"name\""),
        ]
    )

    private func json(
        _ samples: [Sample],
        source: ReadingSource = .notify,
        of stream: StreamDefinition? = nil
    ) -> String {
        let time = Timestamp(microseconds: 1_795_231_205_123_456)
        let noise = [Sample(metric: 0, value: .integer(1))]
        let shared = noise + samples + noise
        let own = shared[1..<(1 + samples.count)]
        let stream = stream ?? self.stream
        let reading = JournalReading(seq: 48_211, stream: stream, time: time, source: source, samples: own)
        var writer = JSONWriter()
        reading.writeJSON(to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private let head = #"{"seq":48211,"ts":"2026-11-21T03:20:05.123456Z","source":"notify""#

    @Test func `the fixed keys come first, then the metrics in the profile's order, repeated ones as an array`() {
        let text = json([
            Sample(metric: 2, value: .real(0.8125)), Sample(metric: 1, value: .boolean(true)),
            Sample(metric: 0, value: .integer(72)), Sample(metric: 2, value: .real(0.8203125)),
        ])
        #expect(text == head + #","heart_rate":72,"sensor_contact":true,"rr_interval":[0.8125,0.8203125]}"#)
    }

    @Test func `the metrics of an open format are in its order as well`() {
        let metrics = (0..<600).map { MetricDescriptor(name: "m\($0)", isRepeated: $0 == 7) }
        let open = StreamDefinition(device: "tag", profile: "p", stream: "s", metrics: metrics, isOpen: true)
        let samples = [599, 7, 3, 7, 600, -1].map { Sample(metric: $0, value: .integer(Int64($0))) }
        #expect(json(samples, of: open) == head + #","m3":3,"m7":[7,7],"m599":599}"#)
    }

    @Test func `a single element of a repeated metric is an array as well`() {
        #expect(json([Sample(metric: 2, value: .real(0.75))]) == head + #","rr_interval":[0.75]}"#)
    }

    @Test func `an unknown value is null, an absent one is omitted`() {
        #expect(json([Sample(metric: 0, value: .null)]) == head + #","heart_rate":null}"#)
        #expect(json([]) == head + "}")
    }

    @Test func `names are escaped, and a metric that is not repeated is written once`() {
        let text = json([Sample(metric: 3, value: .text("a\"b")), Sample(metric: 3, value: .text("c"))])
        #expect(text == head + #","quoted \"name\"":"a\"b"}"#)
    }

    @Test(arguments: ReadingSource.allCases)
    func `each source has its name`(source: ReadingSource) {
        #expect(json([], source: source).hasSuffix("\"source\":\"\(source)\"}"))
    }
}
