public import GattherdGATT

/// A profile written in Swift.
///
/// Each connection has an instance of its own. Stateful decoders keep their state in its stored properties.
public protocol NativeProfile: Sendable {
    /// The name in the configuration, for example `heart-rate`.
    static var name: String { get }
    /// The human-readable name.
    static var title: String { get }
    /// The services to match: a device needs one of them.
    static var services: [BluetoothUUID] { get }
    static var characteristics: [ProfileCharacteristic<Self>] { get }
    static var controls: [Control] { get }
    /// True if only devices whose configuration names the profile use it.
    static var isOptIn: Bool { get }

    /// Starts a connection.
    init()
}

extension NativeProfile {
    public static var controls: [Control] { [] }
    public static var isOptIn: Bool { false }
}
