import GattherdDBus
import GattherdGATT

// What is on the bus, and its properties.
extension VirtualBlueZ {
    /// Puts everything on the bus that is there without a client's doing.
    mutating func exportAll() {
        nodes["/"] = .root
        nodes["/org/bluez"] = .bluez
        for index in adapters.indices where adapters[index].isPresent { exportAdapter(index) }
    }

    /// Puts an adapter and the devices that it remembers on the bus.
    mutating func exportAdapter(_ index: Int) {
        export(.adapter(index), adapters[index].path)
        for (peripheral, memory) in adapters[index].remembered {
            let key = DeviceKey(adapter: index, peripheral: peripheral)
            makeDevice(key)
            devices[key]?.isTrusted = memory.isTrusted
            devices[key]?.isPaired = memory.isBonded
            devices[key]?.isBonded = memory.isBonded
            if peripherals[peripheral].abandonedBy == index { showGhost(key) }
            export(.device(key), devicePath(key))
        }
        adapters[index].remembered.removeAll()
    }

    /// After a crash the kernel still has the link, over which nothing goes any more.
    private mutating func showGhost(_ key: DeviceKey) {
        let epoch = makeID()
        devices[key]?.isConnected = true
        devices[key]?.linkEpoch = epoch
    }

    mutating func export(_ node: Node, _ path: String) {
        guard nodes[path] == nil else { return }
        nodes[path] = node
        effects.append(.added(path: path, interfaces(of: node)))
    }

    mutating func unexport(_ path: String) {
        guard let node = nodes.removeValue(forKey: path) else { return }
        effects.append(.removed(path: path, interfaces(of: node).map(\.name)))
    }

    /// Puts the GATT objects of a device on the bus, parents first.
    mutating func exportGATT(_ key: DeviceKey) {
        guard let gatt = devices[key]?.gatt else { return }
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

    /// Takes the GATT objects of a device away, service by service, children first.
    mutating func unexportGATT(_ key: DeviceKey) {
        guard let gatt = devices[key]?.gatt else { return }
        unexport(gatt)
        devices[key]?.gatt = nil
    }

    mutating func unexport(_ gatt: GATTObjects, except kept: Set<String> = []) {
        for service in gatt.services {
            for (_, characteristic) in gatt.characteristics(of: service) where !kept.contains(characteristic.path) {
                for descriptor in characteristic.descriptors { unexport(descriptor.path) }
                unexport(characteristic.path)
            }
            if !kept.contains(service.path) { unexport(service.path) }
        }
    }

    func devicePath(_ key: DeviceKey) -> String {
        let address = peripherals[key.peripheral].spec.address.description
        return adapters[key.adapter].path + "/dev_" + String(address.map { $0 == ":" ? "_" : $0 })
    }

    var managedObjects: DBusValue {
        let objects = nodes.sorted { $0.key < $1.key }.compactMap { path, node -> DBusEntry? in
            let interfaces = interfaces(of: node)
            return node == .root ? nil : DBusEntry(.objectPath(path), .interfaces(interfaces))
        }
        return .dictionary(key: "o", value: "a{sa{sv}}", objects)
    }

    /// The interfaces of an object; GDBus lists the bus's own ones, too.
    func interfaces(of node: Node) -> [Interface] {
        let common = [Interface(InterfaceName.introspectable), Interface(InterfaceName.properties)]
        switch node {
        case .root: return [Interface(InterfaceName.introspectable), Interface(InterfaceName.objectManager)]
        case .bluez: return [Interface(InterfaceName.introspectable), Interface(InterfaceName.agentManager)]
        case .adapter(let index): return common + [Interface(InterfaceName.adapter, properties(ofAdapter: index))]
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
        guard let battery = devices[key]?.battery else { return [device] }
        return [device, Interface(InterfaceName.battery, [Property("Percentage", .byte(battery))])]
    }

    /// What `Introspect` answers: interfaces with their properties, and children; `nil` for a path without any.
    func introspection(of path: String) -> String? {
        let prefix = path == "/" ? "/" : path + "/"
        let below = nodes.keys.filter { $0 != path && $0.hasPrefix(prefix) }
        guard !below.isEmpty || nodes[path] != nil else { return nil }
        let children = Set(below.map { $0.dropFirst(prefix.count).prefix { $0 != "/" } }).sorted()
        let interfaces = nodes[path].map { self.interfaces(of: $0) } ?? []
        return "<node>" + interfaces.map(\.introspection).joined()
            + children.map { "<node name=\"\($0)\"/>" }.joined() + "</node>"
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
    /// An `a{sv}`.
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
