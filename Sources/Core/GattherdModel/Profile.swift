public import GattherdGATT

/// How values of a characteristic are asked for.
public enum SubscriptionMode: Hashable, Sendable {
    case none
    case notify
    case indicate
    /// Read again and again, with this pause between two reads.
    case poll(every: Duration)
}

/// One characteristic that a profile decodes, and the stream that its readings go to.
public struct CharacteristicDescriptor: Hashable, Sendable {
    /// The service that it must be part of; `nil` for any of the profile's services.
    public var service: BluetoothUUID?
    public var uuid: BluetoothUUID
    public var stream: String
    public var metrics: [MetricDescriptor]
    public var subscription: SubscriptionMode
    /// Read once after each connect, before the link is ready.
    public var isReadAtConnect: Bool
    /// True if the profile decodes other characteristics by this one's value: read before they are subscribed.
    public var isReadFirst: Bool
    /// How often it is read where it can neither notify nor indicate, as some devices of a kind can and others cannot.
    public var pollInstead: Duration?
    /// A device without this characteristic cannot be served by the profile.
    public var isRequired: Bool
    /// Take notifications from a socket of our own instead of D-Bus signals.
    public var prefersSocket: Bool
    /// The longest silence of a subscribed stream before the link is probed.
    public var silence: Duration?

    public init(
        service: BluetoothUUID? = nil,
        uuid: BluetoothUUID,
        stream: String,
        metrics: [MetricDescriptor],
        subscription: SubscriptionMode = .none,
        isReadAtConnect: Bool = false,
        isRequired: Bool = false,
        prefersSocket: Bool = false,
        silence: Duration? = nil,
        pollInstead: Duration? = nil,
        isReadFirst: Bool = false
    ) {
        self.service = service
        self.uuid = uuid
        self.stream = stream
        self.metrics = metrics
        self.subscription = subscription
        self.isReadAtConnect = isReadAtConnect
        self.isRequired = isRequired
        self.prefersSocket = prefersSocket
        self.silence = silence
        self.pollInstead = pollInstead
        self.isReadFirst = isReadFirst
    }
}

/// A whole number that a configuration can give for a device, and that its profile decodes with.
public struct ProfileOption: Hashable, Sendable {
    public let name: String
    /// The value for devices of which nothing is said.
    public let standard: Int64
    public let range: ClosedRange<Int64>
    public let unit: String?

    public init(name: String, standard: Int64, range: ClosedRange<Int64>, unit: String? = nil) {
        self.name = name
        self.standard = standard
        self.range = range
        self.unit = unit
    }
}

/// A plugin that knows one kind of device; the same for native and declarative ones.
public protocol Profile: Sendable {
    /// The slug that configurations name it by, for example `heart-rate`.
    var name: String { get }
    var title: String { get }
    /// A device matches when it has one of these services; empty: when any service has one of the characteristics.
    var services: [BluetoothUUID] { get }
    /// Serves only devices that a person has named it for.
    var isOptIn: Bool { get }
    var characteristics: [CharacteristicDescriptor] { get }
    /// What is decoded from advertisements; a profile with such frames has no characteristics, and its devices are never
    /// connected.
    var advertisements: [AdvertisementDescriptor] { get }
    var controls: [ControlDescriptor] { get }
    /// What is done at each connect, in order.
    var tasks: [ConnectionTaskDescriptor] { get }
    /// Where the profile came from: a path.
    var origin: String { get }
    /// Tells what one name stands for at different times; equal for as long as nothing has changed.
    var revision: Int { get }

    /// What may be said of each device for the profile, such as the circumference of its wheel.
    var options: [ProfileOption] { get }
    /// The same profile for a device of which the configuration says this.
    func configured(with options: [String: Int64]) -> any Profile

    /// Begins the decoding of one connection.
    func makeSession() -> any ProfileSession

    /// Begins the decoding of what one device advertises.
    func makeSession(for sender: Sender) -> any ProfileSession

    /// Gives the octets to write for a control; `value` fits the control's ``ControlKind`` already.
    ///
    /// - Parameters:
    ///   - control: The control's position in ``controls``.
    ///   - value: What to set.
    /// - Returns: The characteristic's new value.
    /// - Throws: ``ControlError`` when the profile refuses the value.
    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8]
}

extension Profile {
    public var isOptIn: Bool { false }
    public var revision: Int { 0 }
    public var tasks: [ConnectionTaskDescriptor] { [] }
    public var advertisements: [AdvertisementDescriptor] { [] }

    public func makeSession(for sender: Sender) -> any ProfileSession { makeSession() }
    public var options: [ProfileOption] { [] }
    public func configured(with options: [String: Int64]) -> any Profile { self }

    /// Its devices are only listened to.
    public var isForAdvertisements: Bool { !advertisements.isEmpty }

    /// Each stream's name, where it comes from, and its metrics; the positions are those of the sessions.
    public var streams: [(name: String, source: String, metrics: [MetricDescriptor])] {
        isForAdvertisements
            ? advertisements.map { ($0.stream, $0.source.description, $0.metrics) }
            : characteristics.map { ($0.stream, $0.uuid.description, $0.metrics) }
    }

    /// The position of the frame that octets from an advertisement are: the first that begins like them and is as long,
    /// else the first that begins like them, which will reject them; `nil` when they are none of the profile's.
    public func frame(_ octets: [UInt8], from source: AdvertisementSource, name: String?) -> Int? {
        let like = advertisements.indices.filter { index in
            let frame = advertisements[index]
            return frame.source == source && frame.beginning?.fits(octets) != false
                && name.flatMap { frame.name?.fits($0) } != false
        }
        return like.first { advertisements[$0].length?.contains(octets.count) != false } ?? like.first
    }
}

/// The decoder of one connection, or of one device that advertises; may remember what earlier payloads said.
///
/// One thread at a time uses a session.
public protocol ProfileSession: AnyObject {
    /// Decodes one payload and appends its samples.
    ///
    /// - Parameters:
    ///   - payload: The characteristic's value, of any length and content.
    ///   - characteristic: The position in ``Profile/characteristics``, or in ``Profile/advertisements``.
    ///   - samples: Takes the samples; what it holds after a throw is to be forgotten. An advertisement that only repeats
    ///     an earlier one adds none.
    /// - Throws: ``PayloadError`` when the payload is not what the profile says.
    func decode(
        _ payload: Span<UInt8>,
        characteristic: Int,
        into samples: inout [Sample]
    ) throws(PayloadError)

    /// How far the counters have come by which recordings are told; empty for what is not encrypted.
    var replayMarks: [ReplayCounter] { get }

    /// Rejects also what is older than an earlier session of the same sender has seen.
    ///
    /// - Parameter marks: The counters of all senders.
    func resume(from marks: [String: UInt32])
}

extension ProfileSession {
    public var replayMarks: [ReplayCounter] { [] }
    public func resume(from marks: [String: UInt32]) {}
}

/// What tells a profile from another one, and from an earlier state of itself.
public struct ProfileIdentity: Hashable, Sendable {
    private let name: String
    private let origin: String
    private let revision: Int

    public init(_ profile: any Profile) {
        name = profile.name
        origin = profile.origin
        revision = profile.revision
    }
}

/// How long a stream may be silent before its link is probed.
public enum SilenceLimit: Hashable, Sendable {
    /// As long as the stream's own rhythm lets one expect.
    case learned
    /// A link whose stream is silent for longer is replaced, even if it answers.
    case stated(Duration)
    /// The stream is not watched.
    case never
}
