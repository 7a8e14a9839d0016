extension Reading {
    /// Writes the reading as subscribers see it: `seq`, `ts`, `source`, then its metrics in the profile's order.
    ///
    /// A metric without a sample is left out; a repeated metric is always an array. What history could not
    /// store has `"stored":false` before its metrics.
    ///
    /// - Parameters:
    ///   - seq: The reading's position in the log.
    ///   - samples: The samples of the batch that the reading is part of.
    ///   - isStored: False for a reading that history does not have.
    ///   - writer: Takes the object.
    public func writeJSON(seq: Int64, samples: [Sample], isStored: Bool = true, to writer: inout JSONWriter) {
        writer.beginReading(seq: seq, time: time, source: source.rawValue)
        if !isStored {
            writer.key("stored")
            writer.boolean(false)
        }
        for metric in stream.metrics.indices { writeMetric(metric, samples: samples, to: &writer) }
        writer.endObject()
    }

    private func writeMetric(_ metric: Int, samples: [Sample], to writer: inout JSONWriter) {
        let isRepeated = stream.metrics[metric].isRepeated
        var isOpen = false
        for index in self.samples where samples[index].metric == metric && (isRepeated || !isOpen) {
            if !isOpen {
                writer.key(stream.jsonKeys[metric])
                if isRepeated { writer.beginArray() }
                isOpen = true
            }
            writer.value(samples[index].value)
        }
        if isOpen && isRepeated { writer.endArray() }
    }
}

extension JSONWriter {
    /// Begins a reading's object: what comes before its metrics.
    public mutating func beginReading(seq: Int64, time: Timestamp, source: String) {
        beginObject()
        key("seq")
        integer(seq)
        key("ts")
        timestamp(time)
        key("source")
        string(source)
    }
}
