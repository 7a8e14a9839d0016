public import GattherdModel
import GattherdSync
import Synchronization

/// What one device has sent so far, counted where it is decoded.
public final class DeviceMeter: Sendable {
    private let readingCount = Atomic<UInt64>(0)
    private let rejectCount = Atomic<UInt64>(0)
    private let lastMicroseconds = Atomic<Int64>(0)
    /// The rejects of each stream since its last reading.
    private let streaks = Locked<[String: RejectStreak]>([:])
    /// True while ``streaks`` has some, so that readings need no lock otherwise.
    private let hasStreaks = Atomic<Bool>(false)

    public init() {}

    /// Readings that decoded since the start.
    public var readings: UInt64 { readingCount.load(ordering: .relaxed) }
    /// Payloads that did not decode since the start.
    public var rejects: UInt64 { rejectCount.load(ordering: .relaxed) }

    /// When the newest reading was received.
    public var lastReading: Timestamp? {
        let microseconds = lastMicroseconds.load(ordering: .relaxed)
        return microseconds == 0 ? nil : Timestamp(microseconds: microseconds)
    }

    /// The streams of which nothing decodes, and the reasons, in the order of their names.
    public var undecodable: [(stream: String, reason: String)] {
        let streaks = streaks.withLock { $0.filter { $0.value.isUndecodable } }
        return streaks.sorted { $0.key < $1.key }.map { ($0.key, $0.value.reason) }
    }

    /// Ends what is known of undecodable streams: the device is decoded in another way from now on.
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

    /// Returns true if people should hear that nothing of the stream decodes.
    func countReject(of stream: String, _ reason: String, at time: Timestamp) -> Bool {
        rejectCount.wrappingAdd(1, ordering: .relaxed)
        hasStreaks.store(true, ordering: .relaxed)
        return streaks.withLock { $0[stream, default: RejectStreak()].add(reason, at: time) }
    }
}

/// The rejects of one stream since its last reading, over all connections.
struct RejectStreak {
    /// Fewer are what happens now and then.
    private static let limit = 3
    /// The shortest time between two reports of a stream that decodes now and then.
    private static let pause = Duration.seconds(3600)

    private(set) var reason = ""
    private var count = 0
    private var reportedAt: Timestamp?

    var isUndecodable: Bool { count >= Self.limit }

    /// Returns true when the stream becomes one of which nothing decodes, at most once an hour.
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

/// Where the values of one characteristic of one connection go.
final class StreamBinding: Sendable {
    let stream: StreamDefinition
    let profile: any Profile
    /// The position in the profile's characteristics.
    let characteristic: Int
    /// The same for all bindings of one profile on one connection: they share a decoder.
    let session: Int
    let source: ReadingSource
    let meter: DeviceMeter
    /// How many values have come; for the watch over silent streams.
    let values = Atomic<UInt64>(0)
    /// The newest value of the first metric, where a control wants to know the echo of what it wrote.
    let echo: Locked<SampleValue?>?
    /// How far the device has come, where a task wants to go on from there.
    let progress: StreamProgress?
    /// Who advertises; `nil` for a device that is connected.
    let advertiser: Advertiser?

    init(
        stream: StreamDefinition,
        profile: any Profile,
        characteristic: Int,
        session: Int,
        source: ReadingSource,
        meter: DeviceMeter,
        echo: Locked<SampleValue?>?,
        progress: StreamProgress? = nil,
        advertiser: Advertiser? = nil
    ) {
        self.stream = stream
        self.profile = profile
        self.characteristic = characteristic
        self.session = session
        self.source = source
        self.meter = meter
        self.echo = echo
        self.progress = progress
        self.advertiser = advertiser
    }

    func makeSession() -> any ProfileSession {
        advertiser.map { profile.makeSession(for: $0.sender) } ?? profile.makeSession()
    }
}

/// The newest value of one metric of a stream, over all connections.
struct StreamProgress: Sendable {
    /// The metric's position.
    let metric: Int
    let newest: Locked<Int64?>

    /// Takes note of a reading.
    func note(_ samples: ArraySlice<Sample>) {
        guard case .integer(let number) = samples.last(where: { $0.metric == metric })?.value else { return }
        newest.withLock { $0 = number }
    }
}
