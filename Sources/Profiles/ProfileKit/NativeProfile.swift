public import GattherdGATT

/// A profile written in Swift: what it decodes, and how.
///
/// Its instance is the memory of one connection: a profile whose decoders need to know what came before keeps it in
/// its stored properties, any other has none.
public protocol NativeProfile: Sendable {
    /// What configurations call it, for example `heart-rate`.
    static var name: String { get }
    /// For people.
    static var title: String { get }
    /// A device matches when it has one of these.
    static var services: [BluetoothUUID] { get }
    static var characteristics: [Characteristic<Self>] { get }
    static var controls: [Control] { get }
    /// Serves only devices that name it in the configuration.
    static var isOptIn: Bool { get }

    /// Begins a connection.
    init()
}

extension NativeProfile {
    public static var controls: [Control] { [] }
    public static var isOptIn: Bool { false }
}
