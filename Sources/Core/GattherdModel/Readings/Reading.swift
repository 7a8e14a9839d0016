/// The GATT operation or advertisement that a value came from.
public enum ReadingSource: String, Hashable, Sendable, CaseIterable {
    case notify
    case indicate
    case read
    case advert
}

/// A source of readings of a device: normally one characteristic of one profile.
///
/// A class, so that a reading carries one pointer instead of five strings.
public final class StreamDefinition: Sendable {
    /// The device's name.
    public let device: String
    public let profile: String
    /// The stream's name, for example `heart_rate`; the last part of its MQTT topic.
    public let stream: String
    public let metrics: [MetricDescriptor]
    /// True if the metrics are all that the format defines; a device sends a few of them.
    public let isOpen: Bool
    /// `"name":` for each metric, ready for ``JournalReading/writeJSON(to:)``.
    let jsonKeys: [JSONKey]

    public init(
        device: String,
        profile: String,
        stream: String,
        metrics: [MetricDescriptor],
        isOpen: Bool = false
    ) {
        self.device = device
        self.profile = profile
        self.stream = stream
        self.metrics = metrics
        self.isOpen = isOpen
        jsonKeys = metrics.map { JSONKey($0.name) }
    }

    /// Creates the same stream of another device, or with another name; both share their metrics.
    public init(_ other: StreamDefinition, of device: String, named stream: String? = nil) {
        self.device = device
        (profile, isOpen) = (other.profile, other.isOpen)
        self.stream = stream ?? other.stream
        (metrics, jsonKeys) = (other.metrics, other.jsonKeys)
    }

    /// Creates the stream of an advertisement, whose readings have the signal strength as well.
    public convenience init(device: String, profile: String, _ frame: AdvertisementDescriptor) {
        let metrics = frame.metrics + (frame.signal == nil ? [] : [.signalStrength])
        self.init(device: device, profile: profile, stream: frame.stream, metrics: metrics, isOpen: frame.isOpen)
    }
}

/// A decoded value of a stream; its samples are in the batch that contains it.
public struct Reading: Sendable {
    public let stream: StreamDefinition
    public let time: Timestamp
    public let source: ReadingSource
    /// The range of the reading's samples in ``ReadingBatch/samples``.
    public let samples: Range<Int>
    /// True for a record of the past, whose values are not the current ones.
    public var isPast = false
    /// True if the time is right by the current clock, also if the value was received before the clock was set.
    public var isDated = false

    public init(stream: StreamDefinition, time: Timestamp, source: ReadingSource, samples: Range<Int>) {
        self.stream = stream
        self.time = time
        self.source = source
        self.samples = samples
    }
}

/// A payload that did not decode, with the reason.
public struct Reject: Hashable, Sendable {
    public let time: Timestamp
    public let device: String
    /// The characteristic's UUID in its shortest form.
    public let characteristic: String
    public let payload: [UInt8]
    public let reason: String

    public init(time: Timestamp, device: String, characteristic: String, payload: [UInt8], reason: String) {
        self.time = time
        self.device = device
        self.characteristic = characteristic
        self.payload = payload
        self.reason = reason
    }
}

/// A batch of readings from decoding to history; flat arrays, so that a thousand readings need few allocations.
public struct ReadingBatch: Sendable {
    public var readings: [Reading] = []
    public var samples: [Sample] = []
    public var rejects: [Reject] = []
    /// The replay counters that grew, by sender.
    public var replayMarks: [String: UInt32] = [:]
    /// The cursors of stored records that moved; each covers the readings of this batch and earlier ones.
    public var cursors: [RecordCursor.Key: RecordCursor] = [:]

    public init() {}

    public var isEmpty: Bool { readings.isEmpty && rejects.isEmpty && replayMarks.isEmpty && cursors.isEmpty }

    /// Removes everything and keeps the capacity.
    ///
    /// Journal entries share the storage of the samples, so the next batch gets another one. It has room for as many
    /// samples as this batch, not for those of the largest batch so far, which a burst has caused.
    public mutating func removeAll() {
        readings.removeAll(keepingCapacity: true)
        if !samples.isEmpty {
            let count = samples.count
            samples = []
            samples.reserveCapacity(count)
        }
        rejects.removeAll(keepingCapacity: true)
        replayMarks.removeAll(keepingCapacity: true)
        cursors.removeAll(keepingCapacity: true)
    }
}
