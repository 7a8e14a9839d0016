/// The metrics that number and date the stored records of a stream; each index is one of the stream's metrics.
public struct RecordRule: Hashable, Sendable {
    /// A metric that is a time or a duration.
    public struct Span: Hashable, Sendable {
        public var metric: Int
        /// The unit of its integers.
        public var unit: Duration

        public init(metric: Int, unit: Duration) {
            (self.metric, self.unit) = (metric, unit)
        }
    }

    /// The time of a record.
    public enum Time: Hashable, Sendable {
        /// The time of receipt.
        case none
        /// The device's clock: a date without a zone, or an integer in this unit since the clock's zero.
        case clock(Span)
        /// The age of the record when it was sent.
        case age(Span)
    }

    /// The record's number; `nil` if its time identifies it.
    public var number: Int?
    /// The width in bits of a number that wraps.
    public var wrapBits: Int?
    /// True if no number is left out, so that a missing one is a lost record.
    public var isDense = true
    public var time = Time.none
    /// A duration that is added to the time.
    public var offset: Span?
    /// The time between two records of one payload.
    public var interval: Span?
    /// The index of a payload's first record, and the number of stored records, for downloads by blocks.
    public var index: Int?
    public var total: Int?
    /// The stream whose record of the same number was sent before; its time is used.
    public var companion: String?
    /// The metrics with one value for each record of a payload.
    public var repeated: Set<Int> = []
    /// The metric with the reason why a record's time is uncertain.
    public var doubt: Int

    /// - Parameter doubt: The metric with the reason why a record's time is uncertain.
    public init(doubt: Int) {
        self.doubt = doubt
    }

    /// The metrics that place a block and not a single record.
    public var places: Set<Int> {
        var places = Set([index, total, interval?.metric].compactMap { $0 })
        if case .age(let span) = time { places.insert(span.metric) }
        return places.subtracting(repeated)
    }

    /// True if records are counted, by their numbers or by the intervals between them; else only times identify them.
    public var countsRecords: Bool {
        if number != nil { return true }
        return if case .age = time { interval != nil } else { false }
    }

    /// True if a payload has several records.
    public var isBlock: Bool { !repeated.isEmpty }
}

extension MetricDescriptor {
    /// The reason why a record's time is uncertain; the last metric of a stream of records.
    public static let timeUncertain = Self(name: "time_uncertain", kind: .state)
}

/// The position in the stored records of one stream of one device, in the file with the readings.
public struct RecordCursor: Hashable, Sendable {
    /// The stream to which a cursor belongs.
    public struct Key: Hashable, Sendable {
        public let device: String
        public let profile: String
        public let stream: String

        public init(device: String, profile: String, stream: String) {
            (self.device, self.profile, self.stream) = (device, profile, stream)
        }
    }

    public var key: Key
    /// The address of the device; another device of the same name starts from the beginning.
    public var address: String
    /// The number through which all records are stored.
    public var number: Int64?
    /// The time of the record with ``number``.
    public var time: Timestamp?
    /// The complete state, in the form of its machine.
    public var state: String
    /// The correction of the gateway's clock, in microseconds, in the boot in which the state was written.
    public var correction: Int64 = 0

    public init(key: Key, address: String, number: Int64?, time: Timestamp?, state: String) {
        (self.key, self.address, self.number, self.time, self.state) = (key, address, number, time, state)
    }
}
