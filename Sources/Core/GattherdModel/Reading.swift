/// How a value came to us.
public enum ReadingSource: String, Hashable, Sendable, CaseIterable {
    case notify
    case indicate
    case read
    case advert
}

/// One source of readings of a device: normally one characteristic of one profile.
///
/// A class, so that a reading carries a pointer and not five strings.
public final class StreamDefinition: Sendable {
    /// The device's slug.
    public let device: String
    public let profile: String
    /// The stream's name, for example `heart_rate`; the last part of its MQTT topic.
    public let stream: String
    public let metrics: [MetricDescriptor]
    /// `"name":` for each metric, ready for ``Reading/writeJSON(seq:samples:isStored:to:)``.
    let jsonKeys: [JSONKey]

    public init(device: String, profile: String, stream: String, metrics: [MetricDescriptor]) {
        self.device = device
        self.profile = profile
        self.stream = stream
        self.metrics = metrics
        jsonKeys = metrics.map { JSONKey($0.name) }
    }
}

/// One decoded value event of a stream; its samples lie in the batch that it is part of.
public struct Reading: Sendable {
    public let stream: StreamDefinition
    public let time: Timestamp
    public let source: ReadingSource
    /// Where the reading's samples are in ``ReadingBatch/samples``.
    public let samples: Range<Int>

    public init(stream: StreamDefinition, time: Timestamp, source: ReadingSource, samples: Range<Int>) {
        self.stream = stream
        self.time = time
        self.source = source
        self.samples = samples
    }
}

/// A payload that did not decode, kept with its octets and the reason.
public struct Reject: Hashable, Sendable {
    public let time: Timestamp
    public let device: String
    /// The characteristic's UUID in its shortest form.
    public let characteristic: String
    public let octets: [UInt8]
    public let reason: String

    public init(time: Timestamp, device: String, characteristic: String, octets: [UInt8], reason: String) {
        self.time = time
        self.device = device
        self.characteristic = characteristic
        self.octets = octets
        self.reason = reason
    }
}

/// What crosses from decoding to history at once: flat, so that a thousand readings are few allocations.
public struct ReadingBatch: Sendable {
    public var readings: [Reading] = []
    public var samples: [Sample] = []
    public var rejects: [Reject] = []
    /// The counters that have grown, by who counts.
    public var replayMarks: [String: UInt32] = [:]

    public init() {}

    public var isEmpty: Bool { readings.isEmpty && rejects.isEmpty && replayMarks.isEmpty }

    /// Forgets everything and keeps the memory.
    public mutating func removeAll() {
        readings.removeAll(keepingCapacity: true)
        samples.removeAll(keepingCapacity: true)
        rejects.removeAll(keepingCapacity: true)
        replayMarks.removeAll(keepingCapacity: true)
    }
}
