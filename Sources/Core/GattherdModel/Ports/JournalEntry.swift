/// A reading with its number in the journal.
public struct JournalReading: Sendable {
    public let seq: Int64
    public let stream: StreamDefinition
    public let time: Timestamp
    public let source: ReadingSource
    /// False for a reading that history could not store, because the disk was full.
    public let isStored: Bool
    /// The samples, at least one; readings of one commit share the storage.
    public let samples: ArraySlice<Sample>

    public init(
        seq: Int64,
        stream: StreamDefinition,
        time: Timestamp,
        source: ReadingSource,
        isStored: Bool = true,
        samples: ArraySlice<Sample>
    ) {
        self.seq = seq
        self.stream = stream
        self.time = time
        self.source = source
        self.isStored = isStored
        self.samples = samples
    }

    /// The device's name.
    public var device: String { stream.device }

    /// The approximate size in bytes, in memory and as text.
    public var size: Int {
        samples.reduce(80) { size, sample in
            if case .text(let text) = sample.value { return size + 24 + text.utf8.count }
            return size + 24
        }
    }
}

/// Readings are equal if their content is; the streams may have metrics without a sample.
extension JournalReading: Hashable {
    public static func == (left: Self, right: Self) -> Bool {
        left.seq == right.seq && left.time == right.time && left.source == right.source
            && left.isStored == right.isStored && left.stream.device == right.stream.device
            && left.stream.stream == right.stream.stream && left.values.elementsEqual(right.values, by: ==)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(seq)
    }

    /// The name of the metric and the value of each sample.
    private var values: some Sequence<(String, SampleValue)> {
        samples.lazy.map { [stream] sample in
            let metrics = stream.metrics
            return (metrics.indices.contains(sample.metric) ? metrics[sample.metric].name : "", sample.value)
        }
    }
}

/// A correction of the times of stored rows, after a wrong clock was set.
public struct ClockCorrection: Hashable, Sendable {
    /// The number before the first corrected entry; the last one is ``through``.
    public let after: Int64
    public let through: Int64
    /// The difference that was added to their times.
    public let shift: Duration

    public init(after: Int64, through: Int64, shift: Duration) {
        self.after = after
        self.through = through
        self.shift = shift
    }
}

/// An entry of the journal, in the order of the commits to history.
public enum JournalEntry: Hashable, Sendable {
    case reading(JournalReading)
    case event(LifecycleEvent, seq: Int64)
    case reject(Reject, seq: Int64)
    case correction(ClockCorrection, seq: Int64)

    /// The number, which only grows and is never used twice.
    public var seq: Int64 {
        switch self {
        case .reading(let reading): reading.seq
        case .event(_, let seq), .reject(_, let seq), .correction(_, let seq): seq
        }
    }

    public var reading: JournalReading? {
        guard case .reading(let reading) = self else { return nil }
        return reading
    }

    /// The approximate size in bytes, in memory and as text.
    public var size: Int {
        switch self {
        case .reading(let reading): reading.size
        case .event(let event, _): 160 + event.detail.utf8.count
        case .reject(let reject, _): 160 + 2 * reject.payload.count + reject.reason.utf8.count
        case .correction: 100
        }
    }
}

/// Consecutive entries of the journal.
public struct JournalBatch: Hashable, Sendable {
    public var entries: [JournalEntry]
    /// The journal has no other entries for the consumer up to this number.
    public var through: Int64
    /// The entries that the journal has lost.
    ///
    /// The batch then has no others, and the next ones follow after ``through``.
    public let missing: JournalGap?

    public init(_ entries: [JournalEntry], through: Int64) {
        (self.entries, self.through, missing) = (entries, through, nil)
    }

    public init(missing gap: JournalGap) {
        (entries, through, missing) = ([], gap.through, gap)
    }

    public var readings: [JournalReading] { entries.compactMap(\.reading) }
}
