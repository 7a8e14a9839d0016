public import GattherdGATT
public import GattherdModel
import GattherdSync
import Synchronization

/// A device that the gateway has enrolled.
public struct HerdDevice: Sendable {
    public let name: String
    public let address: BluetoothAddress
    /// The profiles that a person chose, in order; `nil` for every one that fits.
    public let profileNames: [String]?
    /// Take notifications from sockets, or not; `nil` leaves it to the profile.
    public let usesSocket: Bool?
    /// The only adapter that may be used; `nil` leaves it to what is seen and free.
    public let adapter: BluetoothAddress?
    public let pairing: DevicePairing
    /// Not `nil` for a device that is only listened to, and never connected.
    public let listening: Listening?
    public private(set) var meter = DeviceMeter()

    /// How a device that only advertises is listened to.
    public struct Listening: Hashable, Sendable {
        /// After how long without an advertisement it is away; `nil` leaves it to the profile.
        public var silence: Duration?
        /// What its advertisements are encrypted with.
        public var key: BindKey?

        public init(silence: Duration? = nil, key: BindKey? = nil) {
            self.silence = silence
            self.key = key
        }
    }

    public init(
        name: String,
        address: BluetoothAddress,
        profileNames: [String]? = nil,
        usesSocket: Bool? = nil,
        adapter: BluetoothAddress? = nil,
        pairing: DevicePairing = DevicePairing(),
        listening: Listening? = nil
    ) {
        self.name = name
        self.address = address
        self.profileNames = profileNames
        self.usesSocket = usesSocket
        self.adapter = adapter
        self.pairing = pairing
        self.listening = listening
    }

    /// The same device with what `successor` says of it.
    func becoming(_ successor: HerdDevice) -> HerdDevice {
        var device = successor
        device.meter = meter
        return device
    }

    /// True when a link of `other` is a link of this device, too.
    func hasSameLink(as other: HerdDevice) -> Bool {
        address == other.address && adapter == other.adapter
    }

    /// True when the configuration says the same of `other`.
    func isConfigured(as other: HerdDevice) -> Bool {
        hasSameLink(as: other) && profileNames == other.profileNames && usesSocket == other.usesSocket
            && pairing == other.pairing && listening == other.listening
    }
}

/// One definition for each stream, over all connections.
final class StreamCatalogue: Sendable {
    private struct Key: Hashable, Sendable {
        let device: String
        let profile: String
        let stream: String
    }

    private struct Shared: Sendable {
        var streams: [Key: StreamDefinition] = [:]
        var echoes: [Key: Locked<SampleValue?>] = [:]
        var progress: [Key: Locked<Int64?>] = [:]
        var nextSession = 1
    }

    private let shared = Locked(Shared())

    /// The definition of a planned stream; the same object for each connection.
    func stream(device: String, _ planned: SessionPlan.Stream) -> StreamDefinition {
        let descriptor = planned.descriptor
        let key = Key(device: device, profile: planned.profile.name, stream: planned.name)
        return shared.withLock { shared in
            if let known = shared.streams[key], known.metrics == descriptor.metrics { return known }
            let stream = StreamDefinition(
                device: device,
                profile: planned.profile.name,
                stream: planned.name,
                metrics: descriptor.metrics
            )
            shared.streams[key] = stream
            return stream
        }
    }

    /// Where the newest value of a stream is, for the control that writes it.
    func echo(device: String, stream: String) -> Locked<SampleValue?> {
        let key = Key(device: device, profile: "", stream: stream)
        return shared.withLock { shared in
            if let known = shared.echoes[key] { return known }
            let echo = Locked<SampleValue?>(nil)
            shared.echoes[key] = echo
            return echo
        }
    }

    /// How far a device has come with what a task asks it for.
    func progress(device: String, profile: String, _ rule: ResumeRule) -> StreamProgress {
        let key = Key(device: device, profile: profile, stream: rule.stream)
        return shared.withLock { shared in
            let newest = shared.progress[key] ?? Locked(nil)
            shared.progress[key] = newest
            return StreamProgress(metric: rule.metric, newest: newest)
        }
    }

    /// A new number for a decoder.
    func newSession() -> Int {
        shared.withLock { shared in
            defer { shared.nextSession += 1 }
            return shared.nextSession
        }
    }

    /// A new number for each decoder, by what ``SessionPlan/Stream/decoder`` calls it.
    func newSessions(for streams: [SessionPlan.Stream]) -> [String: Int] {
        shared.withLock { shared in
            var sessions: [String: Int] = [:]
            for stream in streams where sessions[stream.decoder] == nil {
                sessions[stream.decoder] = shared.nextSession
                shared.nextSession += 1
            }
            return sessions
        }
    }
}
