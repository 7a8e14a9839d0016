public import GattherdModel
import GattherdSync
import Synchronization

/// The counts of one device's readings and rejects, updated by the decoder.
public final class DeviceMeter: Sendable {
    private let readingCount = Atomic<UInt64>(0)
    private let rejectCount = Atomic<UInt64>(0)
    private let lastMicroseconds = Atomic<Int64>(0)
    /// The rejects of each stream since its last reading.
    private let streaks = Locked<[String: RejectStreak]>([:])
    /// True while ``streaks`` is not empty; readings then need no lock in the usual case.
    private let hasStreaks = Atomic<Bool>(false)

    public init() {}

    /// The readings decoded since the start.
    public var readings: UInt64 { readingCount.load(ordering: .relaxed) }
    /// The payloads rejected since the start.
    public var rejects: UInt64 { rejectCount.load(ordering: .relaxed) }

    /// The time of the newest reading.
    public var lastReading: Timestamp? {
        let microseconds = lastMicroseconds.load(ordering: .relaxed)
        return microseconds == 0 ? nil : Timestamp(microseconds: microseconds)
    }

    /// The undecodable streams with reasons, sorted by name.
    public var undecodable: [(stream: String, reason: String)] {
        let streaks = streaks.withLock { $0.filter { $0.value.isUndecodable } }
        return streaks.sorted { $0.key < $1.key }.map { ($0.key, $0.value.reason) }
    }

    /// Clears the streaks: the device gets other decoders.
    func endRejectStreaks() {
        hasStreaks.store(false, ordering: .relaxed)
        streaks.withLock { $0 = [:] }
    }

    func countReading(of stream: String, at time: Timestamp) {
        readingCount.wrappingAdd(1, ordering: .relaxed)
        lastMicroseconds.store(time.microseconds, ordering: .relaxed)
        guard hasStreaks.load(ordering: .relaxed) else { return }
        streaks.withLock { $0[stream]?.end() }
    }

    /// Counts a reject; returns true if the undecodable stream should be reported.
    func countReject(of stream: String, _ reason: String, at time: Timestamp) -> Bool {
        rejectCount.wrappingAdd(1, ordering: .relaxed)
        hasStreaks.store(true, ordering: .relaxed)
        return streaks.withLock { $0[stream, default: RejectStreak()].add(reason, at: time) }
    }
}

/// The rejects of one stream since its last reading, across connections.
struct RejectStreak {
    /// The number of rejects that makes a stream undecodable; fewer happen occasionally.
    private static let limit = 3
    /// The shortest time between two reports of an unstable stream.
    private static let pause = Duration.seconds(3600)

    private(set) var reason = ""
    private var count = 0
    private var reportedAt: Timestamp?

    var isUndecodable: Bool { count >= Self.limit }

    /// Adds a reject; returns true if the stream becomes undecodable, at most once an hour.
    mutating func add(_ reason: String, at time: Timestamp) -> Bool {
        self.reason = reason
        count = min(count + 1, Self.limit + 1)
        let isRecent = reportedAt.map { time >= $0 && $0.advanced(by: Self.pause) > time } ?? false
        guard count == Self.limit, !isRecent else { return false }
        reportedAt = time
        return true
    }

    mutating func end() {
        count = 0
    }
}

/// The destination of one characteristic's values on one connection.
final class StreamBinding: Sendable {
    let stream: StreamDefinition
    let profile: any Profile
    /// The index in the profile's characteristics.
    let characteristic: Int
    /// The decoder's number, shared by all bindings of one profile on one connection.
    let decoder: Int
    let source: ReadingSource
    let meter: DeviceMeter
    /// The number of values, for the silence watch.
    let values = Atomic<UInt64>(0)
    /// The newest value of the first metric, if a control reads its echo from the stream.
    let echo: Locked<SampleValue?>?
    /// The newest value of the metric that a task resumes from, if any.
    let progress: StreamProgress?
    /// The shortest time after which an event of the stream is reset; `nil` without such events.
    let shortestReset: Duration?
    /// The advertising device; `nil` for a connected device.
    let advertiser: Advertiser?
    /// The stored records to which the values belong; `nil` for live values only.
    let records: RecordStream?
    /// True if the binding carries the messages of a download instead of values.
    let isMessage: Bool
    /// The rule by which values are put together from notifications; `nil` if each has one value.
    let messages: MessageRule?
    /// The number of readings of a polled stream; `nil` for other streams.
    let answers: LatestValue<UInt64>?

    init(
        stream: StreamDefinition,
        profile: any Profile,
        characteristic: Int,
        decoder: Int,
        source: ReadingSource,
        meter: DeviceMeter,
        echo: Locked<SampleValue?>?,
        progress: StreamProgress? = nil,
        advertiser: Advertiser? = nil,
        records: RecordStream? = nil,
        isMessage: Bool = false,
        answers: LatestValue<UInt64>? = nil
    ) {
        self.stream = stream
        shortestReset = stream.metrics.compactMap { $0.reset?.after }.min()
        self.profile = profile
        self.characteristic = characteristic
        self.decoder = decoder
        self.source = source
        self.meter = meter
        self.echo = echo
        self.progress = progress
        self.advertiser = advertiser
        self.records = records
        self.isMessage = isMessage
        self.answers = answers
        let isValue = advertiser == nil && !isMessage && profile.characteristics.indices.contains(characteristic)
        messages = isValue ? profile.characteristics[characteristic].messages : nil
    }

    /// Counts a value that had no room in the intake, if it may have been a stored record.
    ///
    /// A download reads a lost block again.
    func countLoss() {
        guard !isMessage, source != .read else { return }
        records?.losses.add()
    }

    func makeDecoder() -> any PayloadDecoder {
        advertiser.map { profile.makeDecoder(for: $0.sender) } ?? profile.makeDecoder()
    }
}

/// The newest value of one metric of a stream, across connections.
struct StreamProgress: Sendable {
    /// The metric's index.
    let metric: Int
    let newest: Locked<Int64?>

    /// Updates the value from a reading.
    func record(_ samples: ArraySlice<Sample>) {
        guard case .integer(let number) = samples.last(where: { $0.metric == metric })?.value else { return }
        newest.withLock { $0 = number }
    }
}
