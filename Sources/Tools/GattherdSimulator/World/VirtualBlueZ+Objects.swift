import GattherdDBus
import GattherdGATT

// The objects on the bus and their interfaces.
extension VirtualBlueZ {
    /// Exports the root objects and the present adapters.
    mutating func exportAll() {
        objects.addRoots()
        for index in adapters.indices where adapters[index].isPresent { exportAdapter(index) }
    }

    /// Exports an adapter and the devices that it remembers.
    mutating func exportAdapter(_ index: Int) {
        export(.adapter(index), adapters[index].path)
        for (peripheral, memory) in adapters[index].remembered {
            let key = DeviceKey(adapter: index, peripheral: peripheral)
            makeDevice(key)
            devices[key]?.restore(memory)
            // After a crash the kernel still has the link, but nothing is transferred over it.
            if peripherals[peripheral].abandonedBy == index {
                let epoch = makeID()
                devices[key]?.adoptLink(epoch: epoch)
            }
            export(.device(key), devicePath(key))
        }
        adapters[index].remembered.removeAll()
    }

    mutating func export(_ node: Node, _ path: String) {
        guard objects.insert(node, at: path) else { return }
        effects.append(.added(path: path, interfaces(of: node)))
    }

    mutating func unexport(_ path: String) {
        guard let node = objects.remove(path) else { return }
        effects.append(.removed(path: path, interfaces(of: node).map(\.name)))
    }

    /// Exports the GATT objects of a device, parents first.
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

    /// Removes the GATT objects of a device.
    mutating func unexportGATT(_ key: DeviceKey) {
        guard let gatt = devices[key]?.gatt else { return }
        unexport(gatt)
        devices[key]?.gatt = nil
    }

    /// Removes GATT objects from the bus, service by service and children first.
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

    /// The reply to `GetManagedObjects`.
    var managedObjects: DBusValue {
        let entries = objects.sorted.filter { $0.node != .root }
            .map { DBusEntry(.objectPath($0.path), .interfaces(interfaces(of: $0.node))) }
        return .dictionary(key: "o", value: "a{sa{sv}}", entries)
    }

    /// The interfaces of an object, including those of the bus, which GDBus lists too.
    func interfaces(of node: Node) -> [Interface] {
        let common = [Interface(InterfaceName.introspectable), Interface(InterfaceName.properties)]
        switch node {
        case .root: return [Interface(InterfaceName.introspectable), Interface(InterfaceName.objectManager)]
        case .bluez: return [Interface(InterfaceName.introspectable), Interface(InterfaceName.agentManager)]
        case .adapter(let index): return common + [Interface(InterfaceName.adapter, adapters[index].properties)]
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

    func properties(ofDevice key: DeviceKey) -> [Property] {
        let (peripheral, adapter) = (peripherals[key.peripheral].spec, adapters[key.adapter].path)
        return devices[key]?.properties(of: peripheral, adapterPath: adapter, at: now) ?? []
    }

    /// The services that were advertised or discovered.
    func uuids(of device: SimulatedDevice) -> DBusValue {
        device.uuids(of: peripherals[device.key.peripheral].spec)
    }

    private func properties(ofService index: Int, _ key: DeviceKey) -> [Property] {
        [
            Property("UUID", .string(peripherals[key.peripheral].spec.services[index].uuid.canonical)),
            Property("Device", .objectPath(devicePath(key))),
            Property("Primary", .boolean(true)),
            Property("Includes", .array(element: "o", [])),
        ]
    }

    private func properties(ofCharacteristic index: Int, _ key: DeviceKey) -> [Property] {
        guard let device = devices[key], let object = device.gatt?.characteristics[index] else { return [] }
        let peripheral = peripherals[key.peripheral]
        let mtu = device.isConnected ? [Property("MTU", .uint16(peripheral.spec.mtu))] : []
        return object.properties(peripheral.characteristics[index].spec) + mtu
    }

    private func properties(ofDescriptor index: Int, _ characteristic: Int, _ key: DeviceKey) -> [Property] {
        guard let object = devices[key]?.gatt?.characteristics[characteristic] else { return [] }
        let spec = peripherals[key.peripheral].characteristics[characteristic].spec.allDescriptors[index]
        return [
            Property("UUID", .string(spec.uuid.canonical)),
            Property("Characteristic", .objectPath(object.path)),
            Property("Value", .bytes(object.descriptors[index].value ?? [])),
        ]
    }

    /// The reply to `Introspect`; `nil` for a path without object and children.
    func introspection(of path: String) -> String? {
        guard let children = objects.children(of: path) else { return nil }
        let interfaces = objects[path].map { self.interfaces(of: $0) } ?? []
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
