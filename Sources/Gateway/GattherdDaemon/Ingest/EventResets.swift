import GattherdModel

/// The events that are reset a while after their last reading.
struct EventResets {
    /// The events of one stream that are reset at the same time.
    struct Due {
        let binding: StreamBinding
        /// The time of the reading that resets: the event's time plus the holding time.
        let time: Timestamp
        var samples: [Sample]
    }

    /// A metric of one connection; bindings are replaced with the same decoder when notifications stop and start again.
    private struct Key: Hashable {
        let decoder: Int
        let characteristic: Int
        let metric: Int
    }

    private struct Pending {
        let binding: StreamBinding
        let due: SuspendingClock.Instant
        let time: Timestamp
        let value: SampleValue
    }

    private var pending: [Key: Pending] = [:]
    /// The time of the next reset of an event; `nil` without one.
    private(set) var next: SuspendingClock.Instant?

    /// Starts the holding time of each event that is not at its reset value, and ends that of the others.
    mutating func record(
        _ samples: ArraySlice<Sample>,
        of binding: StreamBinding,
        at time: Timestamp,
        now: SuspendingClock.Instant
    ) {
        for sample in samples where binding.stream.metrics.indices.contains(sample.metric) {
            guard let reset = binding.stream.metrics[sample.metric].reset else { continue }
            let key = Key(decoder: binding.decoder, characteristic: binding.characteristic, metric: sample.metric)
            pending[key] = nil
            guard sample.value != .null, !sample.value.equals(reset.value) else { continue }
            pending[key] = Pending(
                binding: binding,
                due: now.advanced(by: reset.after),
                time: time.advanced(by: reset.after),
                value: reset.value
            )
        }
        next = pending.values.map(\.due).min()
    }

    /// Starts the holding time again of events that are not reset yet.
    mutating func renew(
        _ samples: ArraySlice<Sample>,
        of binding: StreamBinding,
        at time: Timestamp,
        now: SuspendingClock.Instant
    ) {
        let lasting = samples.filter { sample in
            let (decoder, characteristic) = (binding.decoder, binding.characteristic)
            return pending[Key(decoder: decoder, characteristic: characteristic, metric: sample.metric)] != nil
        }
        record(lasting[...], of: binding, at: time, now: now)
    }

    /// Removes and returns the events whose time is over, one element for each stream and time.
    mutating func removeDue(at now: SuspendingClock.Instant) -> [Due] {
        let due = pending.filter { $0.value.due <= now }.sorted { left, right in
            (left.value.time, left.key.metric) < (right.value.time, right.key.metric)
        }
        var result: [Due] = []
        for (key, event) in due {
            pending[key] = nil
            let sample = Sample(metric: key.metric, value: event.value)
            if let last = result.last, last.binding === event.binding, last.time == event.time {
                result[result.count - 1].samples.append(sample)
            } else {
                result.append(Due(binding: event.binding, time: event.time, samples: [sample]))
            }
        }
        next = pending.values.map(\.due).min()
        return result
    }

    /// Removes the events of decoders that have ended.
    mutating func remove(decoders: Set<Int>) {
        pending = pending.filter { !decoders.contains($0.value.binding.decoder) }
        next = pending.values.map(\.due).min()
    }
}

extension SampleValue {
    /// True if both are the same value; an integer equals a real number of the same size.
    fileprivate func equals(_ other: SampleValue) -> Bool {
        switch (self, other) {
        case (.integer(let whole), .real(let real)), (.real(let real), .integer(let whole)): Double(whole) == real
        default: self == other
        }
    }
}
