/// Identifies one peripheral on one adapter.
struct DeviceKey: Hashable, Sendable {
    /// The index in ``World/adapters``.
    let adapter: Int
    /// The index in ``World/peripherals``.
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

/// The objects on the bus, by path.
struct ExportedObjects: Sendable {
    private var nodes: [String: Node] = [:]

    subscript(path: String) -> Node? { nodes[path] }

    /// All objects, ordered by path.
    var sorted: [(path: String, node: Node)] {
        nodes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Adds the objects that exist while bluetoothd runs.
    mutating func addRoots() {
        nodes["/"] = .root
        nodes["/org/bluez"] = .bluez
    }

    /// Adds an object.
    ///
    /// Returns false if the path is in use.
    mutating func insert(_ node: Node, at path: String) -> Bool {
        guard nodes[path] == nil else { return false }
        nodes[path] = node
        return true
    }

    mutating func remove(_ path: String) -> Node? {
        nodes.removeValue(forKey: path)
    }

    mutating func removeAll() {
        nodes.removeAll()
    }

    /// The names of the path elements below a path; `nil` if nothing exists at the path or below it.
    func children(of path: String) -> [String]? {
        let prefix = path == "/" ? "/" : path + "/"
        let below = nodes.keys.filter { $0 != path && $0.hasPrefix(prefix) }
        guard !below.isEmpty || nodes[path] != nil else { return nil }
        return Set(below.map { String($0.dropFirst(prefix.count).prefix { $0 != "/" }) }).sorted()
    }
}
