public import GattherdModel
import GattherdSync
import Synchronization

/// What one device has sent so far, counted where it is decoded.
public final class DeviceMeter: Sendable {
    private let readingCount = Atomic<UInt64>(0)
    private let rejectCount = Atomic<UInt64>(0)
    private let lastMicroseconds = Atomic<Int64>(0)

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

    func countReading(at time: Timestamp) {
        readingCount.wrappingAdd(1, ordering: .relaxed)
        lastMicroseconds.store(time.microseconds, ordering: .relaxed)
    }

    func countReject() {
        rejectCount.wrappingAdd(1, ordering: .relaxed)
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
