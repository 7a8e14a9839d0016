import GattherdModel

/// The newest values of one stream.
struct LiveStream: Sendable {
    let stream: StreamDefinition
    /// Values in the order of the metrics, the last element of a list; `nil` before the first value.
    private(set) var values: [SampleValue?]
    /// The time of the newest reading.
    private(set) var time = Timestamp(microseconds: 0)
    /// True if the values changed since the last read.
    var isNew = false

    init(_ stream: StreamDefinition) {
        self.stream = stream
        values = Array(repeating: nil, count: stream.metrics.count)
    }

    mutating func update(_ reading: Reading, _ samples: [Sample]) {
        time = reading.time
        isNew = true
        for sample in samples[reading.samples] where values.indices.contains(sample.metric) {
            values[sample.metric] = sample.value
        }
    }
}
