import GattherdBluetooth

/// The GATT objects of all peripherals: each is found by its path, and by its parent without a search.
///
/// A peripheral determines the number of its attributes, so each device has at most ``most`` objects here. Further
/// objects are ignored and counted.
struct AttributeTables {
    /// The maximum number of services, characteristics and descriptors of one device together; real tables have up to
    /// 200.
    static let most = 8192

    private(set) var services: [String: ServiceObject] = [:]
    private(set) var characteristics: [String: CharacteristicObject] = [:]
    private(set) var descriptors: [String: DescriptorObject] = [:]
    /// The paths of the children, by the path of the device, service or characteristic.
    private var children: [String: Set<String>] = [:]
    /// The path of the device that an object counts for, by the object's path.
    private var owners: [String: String] = [:]
    private var counts: [String: Int] = [:]
    private var ignoredCounts: [String: Int] = [:]

    // MARK: - Queries

    /// The number of objects that a device had beyond ``most``.
    func ignored(of device: String) -> Int { ignoredCounts[device] ?? 0 }

    /// The paths of a device's services, of a service's characteristics or of a characteristic's descriptors, in order.
    func children(of parent: String) -> [String] { children[parent]?.sorted() ?? [] }

    /// The device of a service, which may not be known yet.
    func device(ofService path: String) -> String {
        services[path]?.devicePath ?? BlueZ.parent(of: path)
    }

    /// The ATT MTU of a device's link, if one of its characteristics states it.
    func mtu(of device: String) -> Int? {
        for service in children[device] ?? [] {
            for path in children[service] ?? [] {
                if let mtu = characteristics[path]?.mtu { return mtu }
            }
        }
        return nil
    }

    // MARK: - Changes

    /// Adds or replaces a service; returns false if nothing changed.
    mutating func add(_ service: ServiceObject, at path: String) -> Bool {
        guard services[path] != service, admit(path, for: service.devicePath) else { return false }
        if let old = services.updateValue(service, forKey: path) { unlink(path, from: old.devicePath) }
        children[service.devicePath, default: []].insert(path)
        return true
    }

    /// Adds or replaces a characteristic; returns false if nothing changed.
    mutating func add(_ characteristic: CharacteristicObject, at path: String) -> Bool {
        let device = device(ofService: characteristic.servicePath)
        guard characteristics[path] != characteristic, admit(path, for: device) else { return false }
        if let old = characteristics.updateValue(characteristic, forKey: path) { unlink(path, from: old.servicePath) }
        children[characteristic.servicePath, default: []].insert(path)
        return true
    }

    mutating func add(_ descriptor: DescriptorObject, at path: String) {
        let servicePath = characteristics[descriptor.characteristicPath]?.servicePath
        let device = device(ofService: servicePath ?? BlueZ.parent(of: descriptor.characteristicPath))
        guard descriptors[path] != descriptor, admit(path, for: device) else { return }
        if let old = descriptors.updateValue(descriptor, forKey: path) { unlink(path, from: old.characteristicPath) }
        children[descriptor.characteristicPath, default: []].insert(path)
    }

    mutating func update(_ path: String, _ change: (inout CharacteristicObject) -> Void) {
        guard var characteristic = characteristics[path] else { return }
        change(&characteristic)
        characteristics[path] = characteristic
    }

    /// Removes a service; its characteristics are removed one by one.
    mutating func removeService(_ path: String) {
        guard let service = services.removeValue(forKey: path) else { return }
        unlink(path, from: service.devicePath)
        release(path)
    }

    /// Removes a characteristic with its descriptors.
    mutating func removeCharacteristic(_ path: String) -> CharacteristicObject? {
        guard let characteristic = characteristics.removeValue(forKey: path) else { return nil }
        unlink(path, from: characteristic.servicePath)
        release(path)
        for descriptor in children[path] ?? [] { removeDescriptor(descriptor) }
        return characteristic
    }

    mutating func removeDescriptor(_ path: String) {
        guard let descriptor = descriptors.removeValue(forKey: path) else { return }
        unlink(path, from: descriptor.characteristicPath)
        release(path)
    }

    // MARK: - Bookkeeping

    /// Counts a new object of a device; returns false if the device has too many.
    private mutating func admit(_ path: String, for device: String) -> Bool {
        guard owners[path] == nil else { return true }
        guard counts[device, default: 0] < Self.most else {
            ignoredCounts[device, default: 0] += 1
            return false
        }
        owners[path] = device
        counts[device, default: 0] += 1
        return true
    }

    private mutating func release(_ path: String) {
        guard let device = owners.removeValue(forKey: path), let count = counts[device] else { return }
        counts[device] = count > 1 ? count - 1 : nil
        if count <= 1 { ignoredCounts[device] = nil }
    }

    private mutating func unlink(_ path: String, from parent: String) {
        children[parent]?.remove(path)
        if children[parent]?.isEmpty == true { children[parent] = nil }
    }
}

// MARK: - Tables

extension AttributeTables {
    /// The characteristics of a device, by the paths of services and characteristics.
    func characteristics(ofDevice device: String, _ id: PeripheralID) -> [RemoteCharacteristic] {
        children(of: device).flatMap { characteristics(ofService: $0, id) }
    }

    /// The whole table of a device, by path.
    func services(ofDevice device: String, _ id: PeripheralID) -> [RemoteService] {
        children(of: device).compactMap { service($0, of: id) }
    }

    private func service(_ path: String, of id: PeripheralID) -> RemoteService? {
        guard let known = services[path], let uuid = known.uuid else { return nil }
        var service = RemoteService(peripheral: id, uuid: uuid, handle: path, isPrimary: known.isPrimary)
        service.includes = known.includes
        service.characteristics = characteristics(ofService: path, id)
        service.descriptors = service.characteristics.flatMap(descriptors)
        return service
    }

    private func characteristics(ofService path: String, _ id: PeripheralID) -> [RemoteCharacteristic] {
        guard let service = services[path]?.uuid else { return [] }
        return children(of: path).compactMap { path in
            guard let known = characteristics[path], let uuid = known.uuid else { return nil }
            return RemoteCharacteristic(
                peripheral: id,
                service: service,
                uuid: uuid,
                handle: path,
                properties: known.properties
            )
        }
    }

    private func descriptors(of characteristic: RemoteCharacteristic) -> [RemoteDescriptor] {
        children(of: characteristic.handle).compactMap { path in
            guard let uuid = descriptors[path]?.uuid else { return nil }
            return RemoteDescriptor(characteristic: characteristic, uuid: uuid, handle: path)
        }
    }
}
