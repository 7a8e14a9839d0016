/// Identifies one peripheral on one adapter.
struct DeviceKey: Hashable, Sendable {
    /// The index in ``VirtualBlueZ/adapters``.
    let adapter: Int
    /// The index in ``VirtualBlueZ/peripherals``.
    let peripheral: Int
}

/// An object on the bus.
///
/// Services and characteristics have their indices in the scenario, counted over all services of the peripheral.
enum Node: Hashable, Sendable {
    case root
    case bluez
    case adapter(Int)
    case device(DeviceKey)
    case service(DeviceKey, Int)
    case characteristic(DeviceKey, Int)
    case descriptor(DeviceKey, characteristic: Int, Int)
}

/// The names of the interfaces of BlueZ's objects.
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
