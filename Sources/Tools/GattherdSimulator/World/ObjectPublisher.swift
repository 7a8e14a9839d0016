import GattherdDBus
import GattherdGATT

/// The objects on the bus: exports and removes them, and renders their interfaces.
final class ObjectPublisher {
    private let world: World
    private var objects = ExportedObjects()

    init(_ world: World) {
        self.world = world
    }

    /// The object at a path.
    subscript(path: String) -> Node? { objects[path] }

    /// All objects, ordered by path.
    var all: [(path: String, node: Node)] { objects.sorted }

    /// Exports the objects that exist while bluetoothd runs.
    func exportRoots() {
        objects.addRoots()
    }

    func exportAdapter(_ index: Int) {
        export(.adapter(index), world.adapters[index].path)
    }

    func unexportAdapter(_ index: Int) {
        unexport(world.adapters[index].path)
    }

    func exportDevice(_ key: DeviceKey) {
        export(.device(key), world.path(of: key))
    }

    /// Removes a device's object and its GATT objects from the bus.
    func unexportDevice(_ key: DeviceKey) {
        if let gatt = world.devices[key]?.gatt { unexport(gatt) }
        unexport(world.path(of: key))
    }

    /// Exports the GATT objects of a device, parents first.
    func exportGATT(_ key: DeviceKey) {
        guard let gatt = world.devices[key]?.gatt else { return }
        for service in gatt.services {
            export(.service(key, service.index), service.path)
            for (index, characteristic) in gatt.characteristics(of: service) {
                export(.characteristic(key, index), characteristic.path)
                for (place, descriptor) in characteristic.descriptors.enumerated() {
                    export(.descriptor(key, characteristic: index, place), descriptor.path)
                }
            }
        }
    }

    /// Removes GATT objects from the bus, service by service and children first.
    func unexport(_ gatt: GATTObjects, except kept: Set<String> = []) {
        for service in gatt.services {
            for (_, characteristic) in gatt.characteristics(of: service) where !kept.contains(characteristic.path) {
                for descriptor in characteristic.descriptors { unexport(descriptor.path) }
                unexport(characteristic.path)
            }
            if !kept.contains(service.path) { unexport(service.path) }
        }
    }

    /// Removes all objects and emits no signals.
    func removeAll() {
        objects.removeAll()
    }

    private func export(_ node: Node, _ path: String) {
        guard objects.insert(node, at: path) else { return }
        world.effects.append(.added(path: path, interfaces(of: node)))
    }

    private func unexport(_ path: String) {
        guard let node = objects.remove(path) else { return }
        world.effects.append(.removed(path: path, interfaces(of: node).map(\.name)))
    }
}

// MARK: - Interfaces

extension ObjectPublisher {
    /// The reply to `GetManagedObjects`.
    var managedObjects: DBusValue {
        let entries = objects.sorted.filter { $0.node != .root }
            .map { DBusEntry(.objectPath($0.path), .interfaces(interfaces(of: $0.node))) }
        return .dictionary(key: "o", value: "a{sa{sv}}", entries)
    }

    /// The reply to `Introspect`; `nil` for a path without object and children.
    func introspection(of path: String) -> String? {
        guard let children = objects.children(of: path) else { return nil }
        let interfaces = objects[path].map { self.interfaces(of: $0) } ?? []
        return "<node>" + interfaces.map(\.introspection).joined()
            + children.map { "<node name=\"\($0)\"/>" }.joined() + "</node>"
    }

    /// The interfaces of an object, including those of the bus, which GDBus lists too.
    func interfaces(of node: Node) -> [Interface] {
        let common = [Interface(InterfaceName.introspectable), Interface(InterfaceName.properties)]
        switch node {
        case .root: return [Interface(InterfaceName.introspectable), Interface(InterfaceName.objectManager)]
        case .bluez: return [Interface(InterfaceName.introspectable), Interface(InterfaceName.agentManager)]
        case .adapter(let index): return common + [Interface(InterfaceName.adapter, world.adapters[index].properties)]
        case .device(let key): return common + deviceInterfaces(key)
        case .service(let key, let index):
            return common + [Interface(InterfaceName.service, properties(ofService: index, key))]
        case .characteristic(let key, let index):
            return common + [Interface(InterfaceName.characteristic, properties(ofCharacteristic: index, key))]
        case .descriptor(let key, let characteristic, let index):
            let properties = properties(ofDescriptor: index, characteristic, key)
            return common + [Interface(InterfaceName.descriptor, properties)]
        }
    }

    private func deviceInterfaces(_ key: DeviceKey) -> [Interface] {
        let device = Interface(InterfaceName.device, properties(ofDevice: key))
        guard let battery = world.devices[key]?.battery else { return [device] }
        return [device, Interface(InterfaceName.battery, [Property("Percentage", .byte(battery))])]
    }

    private func properties(ofDevice key: DeviceKey) -> [Property] {
        let (peripheral, adapter) = (world.air.peripherals[key.peripheral].spec, world.adapters[key.adapter].path)
        return world.devices[key]?.properties(of: peripheral, adapterPath: adapter, at: world.clock.now) ?? []
    }

    private func properties(ofService index: Int, _ key: DeviceKey) -> [Property] {
        [
            Property("UUID", .string(world.air.peripherals[key.peripheral].spec.services[index].uuid.canonical)),
            Property("Device", .objectPath(world.path(of: key))),
            Property("Primary", .boolean(true)),
            Property("Includes", .array(element: "o", [])),
        ]
    }

    private func properties(ofCharacteristic index: Int, _ key: DeviceKey) -> [Property] {
        guard let device = world.devices[key], let object = device.gatt?.characteristics[index] else { return [] }
        let peripheral = world.air.peripherals[key.peripheral]
        let mtu = device.isConnected ? [Property("MTU", .uint16(peripheral.spec.mtu))] : []
        return object.properties(peripheral.characteristics[index].spec) + mtu
    }

    private func properties(ofDescriptor index: Int, _ characteristic: Int, _ key: DeviceKey) -> [Property] {
        guard let object = world.devices[key]?.gatt?.characteristics[characteristic] else { return [] }
        let spec = world.air.peripherals[key.peripheral].characteristics[characteristic].spec.allDescriptors[index]
        return [
            Property("UUID", .string(spec.uuid.canonical)),
            Property("Characteristic", .objectPath(object.path)),
            Property("Value", .bytes(object.descriptors[index].value ?? [])),
        ]
    }
}

extension Interface {
    fileprivate var introspection: String {
        let properties = properties.map {
            "<property name=\"\($0.name)\" type=\"\($0.value.signature)\" access=\"read\"/>"
        }
        return "<interface name=\"\(name)\">" + MethodTable.introspection(of: name) + properties.joined()
            + "</interface>"
    }
}

extension DBusValue {
    /// Returns the properties as a dictionary of names and variants, `a{sv}`.
    static func properties(_ properties: [Property]) -> DBusValue {
        .dictionary(key: "s", value: "v", properties.map { DBusEntry(.string($0.name), .variant($0.value)) })
    }

    /// An `a{sa{sv}}`.
    static func interfaces(_ interfaces: [Interface]) -> DBusValue {
        .dictionary(
            key: "s",
            value: "a{sv}",
            interfaces.map { DBusEntry(.string($0.name), .properties($0.properties)) }
        )
    }
}
