extension JournalReading {
    /// Writes the reading as published: `seq`, `ts`, `source`, then its metrics in the profile's order.
    ///
    /// A metric without a sample is omitted; a repeated metric is always an array. A reading that history could not
    /// store has `"stored":false` before its metrics.
    public func writeJSON(to writer: inout JSONWriter) {
        writer.beginReading(seq: seq, time: time, source: source.rawValue)
        if !isStored {
            writer.key("stored")
            writer.boolean(false)
        }
        if stream.isOpen {
            for metric in presentMetrics { stream.write(metric, samples, to: &writer) }
        } else {
            for metric in stream.metrics.indices { stream.write(metric, samples, to: &writer) }
        }
        writer.endObject()
    }

    /// The metrics that the reading has samples of, in the profile's order.
    private var presentMetrics: [Int] {
        Set(samples.lazy.map(\.metric)).sorted().filter(stream.metrics.indices.contains)
    }
}

extension StreamDefinition {
    fileprivate func write(_ metric: Int, _ samples: ArraySlice<Sample>, to writer: inout JSONWriter) {
        let isRepeated = metrics[metric].isRepeated
        var isOpen = false
        for sample in samples where sample.metric == metric && (isRepeated || !isOpen) {
            if !isOpen {
                writer.key(jsonKeys[metric])
                if isRepeated { writer.beginArray() }
                isOpen = true
            }
            writer.value(sample.value)
        }
        if isOpen && isRepeated { writer.endArray() }
    }
}

extension JSONKey {
    fileprivate static let seq = JSONKey("seq")
    fileprivate static let ts = JSONKey("ts")
    fileprivate static let source = JSONKey("source")
}

extension JSONWriter {
    /// Writes the start of a reading's object, up to its metrics.
    public mutating func beginReading(seq: Int64, time: Timestamp, source: String) {
        beginObject()
        key(.seq)
        integer(seq)
        key(.ts)
        timestamp(time)
        key(.source)
        string(source)
    }
}
