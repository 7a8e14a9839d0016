import GattherdModel

/// The newest values of one stream.
struct LiveStream: Sendable {
    let stream: StreamDefinition
    /// By the positions of the metrics, of a repeated one the last element; `nil` for what has not come yet.
    private(set) var values: [SampleValue?]
    /// The newest reading's.
    private(set) var time = Timestamp(microseconds: 0)
    /// It has not been looked at since.
    var isNew = false

    init(_ stream: StreamDefinition) {
        self.stream = stream
        values = Array(repeating: nil, count: stream.metrics.count)
    }

    mutating func take(_ reading: Reading, _ samples: [Sample]) {
        time = reading.time
        isNew = true
        for sample in samples[reading.samples] where values.indices.contains(sample.metric) {
            values[sample.metric] = sample.value
        }
    }
}
