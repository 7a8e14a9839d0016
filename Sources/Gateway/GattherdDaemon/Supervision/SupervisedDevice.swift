public import GattherdGATT
public import GattherdModel

/// A device that the gateway has enrolled.
public struct SupervisedDevice: Sendable {
    public let name: String
    public let address: BluetoothAddress
    /// The profiles that a person chose, in order; `nil` for every one that fits.
    public let profileNames: [String]?
    /// Take notifications from sockets, or not; `nil` leaves it to the profile.
    public let usesSocket: Bool?
    /// The only adapter that may be used; `nil` leaves it to what is seen and free.
    public let adapter: BluetoothAddress?
    public let pairing: DevicePairing
    /// How long its streams may be silent while it is connected.
    public let silence: DeviceSilence
    /// Not `nil` for a device that is only listened to, and never connected.
    public let listening: Listening?
    /// What its profiles need to know of it, by the option's name.
    public let options: [String: Int64]
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

    /// The same device with what `successor` says of it.
    func becoming(_ successor: SupervisedDevice) -> SupervisedDevice {
        var device = successor
        device.meter = meter
        return device
    }

    /// True when a link of `other` is a link of this device, too.
    func hasSameLink(as other: SupervisedDevice) -> Bool {
        address == other.address && adapter == other.adapter
    }

    /// True when the configuration says the same of `other`.
    func isConfigured(as other: SupervisedDevice) -> Bool {
        hasSameLink(as: other) && profileNames == other.profileNames && usesSocket == other.usesSocket
            && pairing == other.pairing && silence == other.silence && listening == other.listening
            && options == other.options
    }
}

/// How long the streams of a connected device may be silent.
public struct DeviceSilence: Hashable, Sendable {
    /// For every stream that is not named; `nil` leaves it to the profile, and then to the stream's rhythm.
    public var all: SilenceLimit?
    public var streams: [String: SilenceLimit]

    public init(all: SilenceLimit? = nil, streams: [String: SilenceLimit] = [:]) {
        self.all = all
        self.streams = streams
    }

    /// The limit of a stream, as the configuration or its profile says.
    func limit(of stream: String, _ descriptor: CharacteristicDescriptor) -> SilenceLimit {
        streams[stream] ?? all ?? descriptor.silence.map { .stated($0) } ?? .learned
    }
}
