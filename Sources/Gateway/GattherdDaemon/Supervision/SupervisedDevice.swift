public import GattherdGATT
public import GattherdModel

/// A device that the gateway has enrolled.
public struct SupervisedDevice: Sendable {
    public let name: String
    public let address: BluetoothAddress
    /// The profiles chosen by name, in order; `nil` for all that fit.
    public let profileNames: [String]?
    /// True to receive notifications through sockets; `nil` for the profile's default.
    public let usesSocket: Bool?
    /// The only usable adapter; `nil` for any.
    public let adapter: BluetoothAddress?
    public let pairing: DevicePairing
    /// The silence limits of the streams while the device is connected.
    public let silence: DeviceSilence
    /// The listening settings of a device that is never connected; otherwise `nil`.
    public let listening: Listening?
    /// The option values for its profiles, by name.
    public let options: [String: Int64]
    public private(set) var meter = DeviceMeter()

    /// The listening settings of a device that only advertises.
    public struct Listening: Hashable, Sendable {
        /// The time without an advertisement after which the device is away; `nil` for the profile's default.
        public var silence: Duration?
        /// The key of encrypted advertisements.
        public var key: BindKey?
        /// The key that recognises its private addresses.
        public var identity: IdentityKey?

        public init(silence: Duration? = nil, key: BindKey? = nil, identity: IdentityKey? = nil) {
            self.silence = silence
            self.key = key
            self.identity = identity
        }
    }

    public init(
        name: String,
        address: BluetoothAddress,
        profileNames: [String]? = nil,
        usesSocket: Bool? = nil,
        adapter: BluetoothAddress? = nil,
        pairing: DevicePairing = DevicePairing(),
        silence: DeviceSilence = DeviceSilence(),
        listening: Listening? = nil,
        options: [String: Int64] = [:]
    ) {
        self.name = name
        self.address = address
        self.profileNames = profileNames
        self.usesSocket = usesSocket
        self.adapter = adapter
        self.pairing = pairing
        self.silence = silence
        self.listening = listening
        self.options = options
    }

    /// Returns the device with the configuration of `successor`.
    func becoming(_ successor: SupervisedDevice) -> SupervisedDevice {
        var device = successor
        device.meter = meter
        return device
    }

    /// Returns true if both devices have the same links.
    func hasSameLink(as other: SupervisedDevice) -> Bool {
        address == other.address && adapter == other.adapter
    }

    /// Returns true if both devices have the same configuration.
    func isConfigured(as other: SupervisedDevice) -> Bool {
        hasSameLink(as: other) && profileNames == other.profileNames && usesSocket == other.usesSocket
            && pairing == other.pairing && silence == other.silence && listening == other.listening
            && options == other.options
    }
}

/// The silence limits of a connected device's streams.
public struct DeviceSilence: Hashable, Sendable {
    /// The limit of all other streams; `nil` for the profile's default, then for the learned interval of the stream.
    public var all: SilenceLimit?
    public var streams: [String: SilenceLimit]

    public init(all: SilenceLimit? = nil, streams: [String: SilenceLimit] = [:]) {
        self.all = all
        self.streams = streams
    }

    /// Returns the limit of a stream from the configuration, its profile or its requests.
    func limit(of stream: String, _ descriptor: CharacteristicDescriptor, _ poll: PollRule?) -> SilenceLimit {
        streams[stream] ?? all ?? (descriptor.silence ?? poll?.silence).map { .stated($0) } ?? .learned
    }
}
