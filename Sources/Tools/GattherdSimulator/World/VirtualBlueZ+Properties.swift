import GattherdDBus
import GattherdGATT

// Reading and setting properties.
extension VirtualBlueZ {
    func properties(ofAdapter index: Int) -> [Property] {
        let adapter = adapters[index]
        return [
            Property("Address", .string(adapter.spec.address)),
            Property("AddressType", .string("public")),
            Property("Name", .string("gattherd-sim")),
            Property("Alias", .string(adapter.alias ?? "gattherd-sim")),
            Property("Class", .uint32(0)),
            Property("Powered", .boolean(adapter.isPowered)),
            Property("Discoverable", .boolean(false)),
            Property("DiscoverableTimeout", .uint32(180)),
            Property("Pairable", .boolean(adapter.isPairable)),
            Property("PairableTimeout", .uint32(0)),
            Property("Discovering", .boolean(adapter.isDiscovering)),
            Property("UUIDs", .strings([])),
            Property("Roles", .strings(["central", "peripheral"])),
        ]
    }

    func properties(ofDevice key: DeviceKey) -> [Property] {
        guard let device = devices[key] else { return [] }
        let spec = peripherals[key.peripheral].spec
        return [
            Property("Address", .string(spec.address.description)),
            Property("AddressType", .string(spec.addressType)),
            Property("Alias", .string(alias(of: device))),
            Property("Paired", .boolean(device.isPaired)),
            Property("Bonded", .boolean(device.isBonded)),
            Property("Trusted", .boolean(device.isTrusted)),
            Property("Blocked", .boolean(device.isBlocked)),
            Property("LegacyPairing", .boolean(false)),
            Property("Connected", .boolean(device.isConnected)),
            Property("UUIDs", uuids(of: device)),
            Property("Adapter", .objectPath(adapters[key.adapter].path)),
            Property("ServicesResolved", .boolean(device.isResolved)),
        ] + advertised(spec.advertising) + (device.rssi.map { [Property("RSSI", .int16($0))] } ?? [])
    }

    private func advertised(_ advertising: AdvertisingSpec) -> [Property] {
        var properties: [Property] = []
        if let name = advertising.name { properties.append(Property("Name", .string(name))) }
        if let power = advertising.txPower { properties.append(Property("TxPower", .int16(power))) }
        if let appearance = advertising.appearance { properties.append(Property("Appearance", .uint16(appearance))) }
        return properties + advertisedData(advertising)
    }

    /// `ManufacturerData` and `ServiceData` as they are now, where there are any.
    func advertisedData(_ advertising: AdvertisingSpec) -> [Property] {
        let turn = advertising.turn(at: now)
        let manufacturer = advertising.manufacturerData.sorted { $0.key < $1.key }
            .map { DBusEntry(.uint16($0.key), .variant(.bytes($0.value[turn % $0.value.count]))) }
        let service = advertising.serviceData.sorted { $0.key.canonical < $1.key.canonical }
            .map { DBusEntry(.string($0.key.canonical), .variant(.bytes($0.value[turn % $0.value.count]))) }
        return [
            Property("ManufacturerData", .dictionary(key: "q", value: "v", manufacturer)),
            Property("ServiceData", .dictionary(key: "s", value: "v", service)),
        ].filter { $0.value.entries != [] }
    }

    /// What was set, else the name, else the address with dashes.
    private func alias(of device: SimulatedDevice) -> String {
        let spec = peripherals[device.key.peripheral].spec
        return device.alias ?? spec.advertising.name
            ?? String(spec.address.description.map { $0 == ":" ? "-" : $0 })
    }

    /// Those that were advertised and those that were found.
    func uuids(of device: SimulatedDevice) -> DBusValue {
        let spec = peripherals[device.key.peripheral].spec
        let found = device.gatt?.services.map { spec.services[$0.index].uuid } ?? []
        return .strings(Set(spec.advertising.services + found).map(\.canonical).sorted())
    }

    func properties(ofService index: Int, _ key: DeviceKey) -> [Property] {
        [
            Property("UUID", .string(peripherals[key.peripheral].spec.services[index].uuid.canonical)),
            Property("Device", .objectPath(devicePath(key))),
            Property("Primary", .boolean(true)),
            Property("Includes", .array(element: "o", [])),
        ]
    }

    func properties(ofCharacteristic index: Int, _ key: DeviceKey) -> [Property] {
        guard let device = devices[key], let object = device.gatt?.characteristics[index] else { return [] }
        let peripheral = peripherals[key.peripheral]
        let spec = peripheral.characteristics[index].spec
        var properties = [
            Property("UUID", .string(spec.uuid.canonical)),
            Property("Service", .objectPath(object.servicePath)),
            Property("Value", .bytes(object.value ?? [])),
            Property("Flags", .strings(spec.properties.flags)),
        ]
        if spec.properties.canSubscribe {
            properties.append(Property("Notifying", .boolean(object.isNotifying || object.isAcquired)))
        }
        if spec.properties.contains(.notify) {
            properties.append(Property("NotifyAcquired", .boolean(object.isAcquired)))
        }
        if spec.properties.contains(.writeWithoutResponse) {
            properties.append(Property("WriteAcquired", .boolean(object.writes != nil)))
        }
        if device.isConnected { properties.append(Property("MTU", .uint16(peripheral.spec.mtu))) }
        return properties
    }

    func properties(ofDescriptor index: Int, _ characteristic: Int, _ key: DeviceKey) -> [Property] {
        guard let object = devices[key]?.gatt?.characteristics[characteristic] else { return [] }
        let spec = peripherals[key.peripheral].characteristics[characteristic].spec.allDescriptors[index]
        return [
            Property("UUID", .string(spec.uuid.canonical)),
            Property("Characteristic", .objectPath(object.path)),
            Property("Value", .bytes(object.descriptors[index].value ?? [])),
        ]
    }
}
