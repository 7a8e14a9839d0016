import GattherdModel

/// Readings for tests.
enum Readings {
    static let strap = StreamDefinition(
        device: "strap",
        profile: "heart-rate",
        stream: "heart_rate",
        metrics: [
            MetricDescriptor(name: "bpm", unit: "bpm"),
            MetricDescriptor(name: "contact", kind: .state),
            MetricDescriptor(name: "rr_interval", unit: "ms", isRepeated: true),
            MetricDescriptor(name: "mode", kind: .state),
        ]
    )
    /// 2026-11-21T03:20:05.123456Z.
    static let time = Timestamp(microseconds: 1_795_231_205_123_456)

    static func reading(
        _ samples: (Int, SampleValue)...,
        seq: Int64 = 42,
        time: Timestamp = time,
        of stream: StreamDefinition = strap,
        source: ReadingSource = .notify
    ) -> JournalReading {
        let samples = samples.map { Sample(metric: $0.0, value: $0.1) }
        return JournalReading(seq: seq, stream: stream, time: time, source: source, samples: samples[...])
    }

    /// Readings of one metric with the numbers `range` and their number as value, a millisecond apart.
    static func numbered(_ range: ClosedRange<Int64>) -> [JournalEntry] {
        range.map { number in
            let time = Timestamp(microseconds: time.microseconds + number * 1000)
            return .reading(reading((0, .integer(number)), seq: number, time: time))
        }
    }
}
