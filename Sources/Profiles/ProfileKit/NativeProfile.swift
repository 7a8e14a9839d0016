public import GattherdGATT

/// A profile written in Swift.
///
/// A connecting profile has services, characteristics, controls and tasks. A listening profile has only
/// ``advertisements``, and its devices are never connected.
///
/// Each connection, or each advertising device, has an instance of its own. Stateful decoders keep their state in its
/// stored properties.
public protocol NativeProfile: Sendable {
    /// The name in the configuration, for example `heart-rate`.
    static var name: String { get }
    /// The human-readable name.
    static var title: String { get }
    /// The services to match, at most 64: a device needs one of them. Empty for a listening profile.
    static var services: [BluetoothUUID] { get }
    /// The characteristics to decode, at most 256.
    static var characteristics: [ProfileCharacteristic<Self>] { get }
    /// The values that users can write, at most 64.
    static var controls: [Control] { get }
    /// The operations at each connect, at most 64. They run in order, after subscribing and before values are read.
    static var tasks: [ProfileTask] { get }
    /// The advertisements to decode, at most 64.
    static var advertisements: [ProfileAdvertisement<Self>] { get }
    /// True if only devices whose configuration names the profile use it; always true for a profile that listens.
    static var isOptIn: Bool { get }

    /// Starts a connection.
    init()

    /// Starts to decode the advertisements of one device; by default like ``init()``.
    init(sender: AdvertisementSender)
}

extension NativeProfile {
    public static var services: [BluetoothUUID] { [] }
    public static var characteristics: [ProfileCharacteristic<Self>] { [] }
    public static var controls: [Control] { [] }
    public static var tasks: [ProfileTask] { [] }
    public static var advertisements: [ProfileAdvertisement<Self>] { [] }
    public static var isOptIn: Bool { false }

    public init(sender: AdvertisementSender) { self.init() }
}
