/// One peripheral as one adapter sees it.
struct DeviceKey: Hashable, Sendable {
    /// The place in ``VirtualBlueZ/adapters``.
    let adapter: Int
    /// The place in ``VirtualBlueZ/peripherals``.
    let peripheral: Int
}

/// What an object path stands for.
///
/// Services and characteristics are counted as in the peripheral's scenario, over all of its services.
enum Node: Hashable, Sendable {
    case root
    case bluez
    case adapter(Int)
    case device(DeviceKey)
    case service(DeviceKey, Int)
    case characteristic(DeviceKey, Int)
    case descriptor(DeviceKey, characteristic: Int, Int)
}

/// The names of BlueZ's interfaces, and of the bus's own that its objects have.
enum InterfaceName {
    static let adapter = "org.bluez.Adapter1"
    static let device = "org.bluez.Device1"
    static let battery = "org.bluez.Battery1"
    static let service = "org.bluez.GattService1"
    static let characteristic = "org.bluez.GattCharacteristic1"
    static let descriptor = "org.bluez.GattDescriptor1"
    static let agent = "org.bluez.Agent1"
    static let agentManager = "org.bluez.AgentManager1"
    static let properties = "org.freedesktop.DBus.Properties"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"
    static let introspectable = "org.freedesktop.DBus.Introspectable"
}
