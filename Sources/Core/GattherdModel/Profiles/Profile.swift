public import GattherdGATT

/// The way to obtain values of a characteristic.
public enum SubscriptionMode: Hashable, Sendable {
    case none
    case notify
    case indicate
    /// Polled with this period.
    case poll(every: Duration)
}

/// A characteristic that a profile decodes, and the stream of its readings.
public struct CharacteristicDescriptor: Hashable, Sendable {
    /// The service that contains it; `nil` for any service of the profile.
    public var service: BluetoothUUID?
    public var uuid: BluetoothUUID
    /// The handle of the only characteristic that is meant; `nil` for any with the UUID.
    public var handle: String?
    public var stream: String
    public var metrics: [MetricDescriptor]
    public var subscription: SubscriptionMode
    /// Read once after each connect, before the link is ready.
    public var isReadAtConnect: Bool
    /// True if other characteristics are decoded by this value: it is read before they are subscribed.
    public var isReadFirst: Bool
    /// The polling period for devices on which it can neither notify nor indicate.
    public var pollInstead: Duration?
    /// True if the profile cannot serve a device without this characteristic.
    public var isRequired: Bool
    /// True to receive notifications by AcquireNotify instead of D-Bus signals.
    public var prefersSocket: Bool
    /// The longest silence of a subscribed stream before the link is probed.
    public var silence: Duration?
    /// The rule of a stream whose values are stored records.
    public var record: RecordRule?
    /// The rule by which values are put together from several notifications; `nil` if each has one value.
    public var messages: MessageRule?
    /// The requests that a stream's values answer.
    public var poll: PollRule?

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

extension CharacteristicDescriptor {
    /// True if only a download reads it; several streams can then share the characteristic.
    public var isOnlyDownloaded: Bool { record != nil && subscription == .none && !isReadAtConnect }
}

/// An integer setting of a device that its profile decodes with.
public struct ProfileOption: Hashable, Sendable {
    public let name: String
    /// The default value.
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

/// A plugin for one kind of device, native or declarative.
public protocol Profile: Sendable {
    /// The name in the configuration, for example `heart-rate`.
    var name: String { get }
    var title: String { get }
    /// The services to match: a device needs one of them. If empty, it needs one of the characteristics.
    var services: [BluetoothUUID] { get }
    /// True if only devices whose configuration names the profile use it.
    var isOptIn: Bool { get }
    var characteristics: [CharacteristicDescriptor] { get }
    /// The frames to decode from advertisements. A profile with frames has no characteristics, and its devices are
    /// never connected.
    var advertisements: [AdvertisementDescriptor] { get }
    var controls: [ControlDescriptor] { get }
    /// The models of devices that the profile is known to serve.
    var models: [ModelDescriptor] { get }
    /// The operations at each connect, in order.
    var tasks: [ConnectionTaskDescriptor] { get }
    /// The downloads of stored records.
    var downloads: [DownloadDescriptor] { get }
    /// The path of the profile's file.
    var origin: String { get }
    /// The version of the loaded profile; equal as long as nothing changed.
    var revision: Int { get }

    /// The settings that each device can have, such as the circumference of its wheel.
    var options: [ProfileOption] { get }
    /// Returns the profile with a device's settings.
    func configured(with options: [String: Int64]) -> any Profile

    /// Makes the decoder of one connection.
    func makeDecoder() -> any PayloadDecoder

    /// Makes the decoder of one device's advertisements.
    func makeDecoder(for sender: Sender) -> any PayloadDecoder

    /// Returns the stream of the readings of advertisement `index` from a device.
    func stream(ofAdvertisement index: Int, from device: String) -> StreamDefinition

    /// Encodes a value for a control; `value` has been checked against its ``ControlKind``.
    ///
    /// - Parameters:
    ///   - control: The control's index in ``controls``.
    ///   - value: The value to set.
    /// - Returns: The characteristic's new value.
    /// - Throws: ``ControlError`` if the profile refuses the value.
    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8]
}

extension Profile {
    public var isOptIn: Bool { false }
    public var revision: Int { 0 }
    public var tasks: [ConnectionTaskDescriptor] { [] }
    public var downloads: [DownloadDescriptor] { [] }
    public var advertisements: [AdvertisementDescriptor] { [] }
    public var models: [ModelDescriptor] { [] }

    public func makeDecoder(for sender: Sender) -> any PayloadDecoder { makeDecoder() }

    public func stream(ofAdvertisement index: Int, from device: String) -> StreamDefinition {
        StreamDefinition(device: device, profile: name, advertisements[index])
    }

    public var options: [ProfileOption] { [] }
    public func configured(with options: [String: Int64]) -> any Profile { self }

    /// True if the profile's devices only advertise.
    public var isForAdvertisements: Bool { !advertisements.isEmpty }

    /// The name, source and metrics of each stream; the indices are those that decoders use.
    public var streams: [(name: String, source: String, metrics: [MetricDescriptor])] {
        isForAdvertisements
            ? advertisements.map { ($0.stream, $0.sourceDescription, $0.metrics) }
            : characteristics.map { ($0.stream, $0.uuid.description, $0.metrics) }
    }

    /// Returns the one-part frame that matches an advertisement, and its payload.
    ///
    /// The first frame with matching bytes and length is returned, else the first with matching bytes, which rejects
    /// the payload. `nil` if no frame matches, or if a name that is not known yet decides which one does.
    public func frame(
        _ octets: [UInt8],
        from source: AdvertisementSource,
        name: String?
    ) -> (index: Int, payload: [UInt8])? {
        let candidates = advertisements.enumerated().compactMap { index, frame -> (index: Int, payload: [UInt8])? in
            guard frame.before.isEmpty else { return nil }
            return frame.contents(octets, from: source).map { (index, $0) }
        }
        let like = candidates.filter { advertisements[$0.index].admits(name: name) }
        let hasLength = { [advertisements] (frame: (index: Int, payload: [UInt8])) in
            advertisements[frame.index].admits(length: frame.payload.count)
        }
        let fitting = like.filter(hasLength)
        guard let first = fitting.first else {
            return name == nil && candidates.contains(where: hasLength) ? nil : like.first
        }
        let isAmbiguous = name == nil && fitting.count > 1 && !advertisements[first.index].names.isEmpty
        return isAmbiguous ? nil : first
    }

    /// Returns the frame with the source of frame `index` whose bytes and length match a payload.
    public func frame(for payload: [UInt8], like index: Int) -> Int {
        guard advertisements.indices.contains(index) else { return index }
        let wanted = advertisements[index]
        let like = advertisements.indices.filter { other in
            let frame = advertisements[other]
            return frame.source == wanted.source && frame.before == wanted.before
                && frame.beginning?.fits(payload.dropFirst(frame.before.reduce(0) { $0 + $1.length })) != false
        }
        return like.first { advertisements[$0].admits(length: payload.count) } ?? like.first ?? index
    }
}

/// The decoder of one connection or of one advertising device; may keep state between payloads.
///
/// Only one thread at a time uses a decoder.
public protocol PayloadDecoder: AnyObject {
    /// Decodes one payload and appends its samples.
    ///
    /// - Parameters:
    ///   - payload: The characteristic's value, of any length and content.
    ///   - characteristic: The index in ``Profile/characteristics``, or in ``Profile/advertisements``.
    ///   - samples: Receives the samples; after a throw its content is undefined. An advertisement that only repeats
    ///     an earlier one adds none.
    /// - Throws: ``PayloadError`` if the payload does not decode.
    func decode(
        _ payload: Span<UInt8>,
        characteristic: Int,
        into samples: inout [Sample]
    ) throws(PayloadError)

    /// The replay counters of encrypted senders; empty without encryption.
    var replayMarks: [ReplayCounter] { get }

    /// Restores replay counters, so that payloads with lower counters than those of earlier decoders are rejected.
    ///
    /// - Parameter marks: The counters of all senders.
    func resume(from marks: [String: UInt32])
}

extension PayloadDecoder {
    public var replayMarks: [ReplayCounter] { [] }
    public func resume(from marks: [String: UInt32]) {}
}

/// The identity of a version of a profile.
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

/// The time that a stream may be silent before its link is probed.
public enum SilenceLimit: Hashable, Sendable {
    /// A limit learned from the stream's own rate.
    case learned
    /// A configured limit: the link of a stream that is silent for longer is replaced, even if a probe succeeds.
    case stated(Duration)
    /// No limit.
    case never
}
