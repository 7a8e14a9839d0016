import GattherdBluetooth
import GattherdDBus

// The GATT tables.
extension ObjectTree {
    /// The characteristics of a peripheral, by the paths of services and characteristics.
    func table(of id: PeripheralID) -> [RemoteCharacteristic] {
        guard let device = devicePath(id) else { return [] }
        return attributes.children(of: device).flatMap { characteristics(ofService: $0, of: id) }
    }

    /// The whole table of a peripheral, by path.
    func services(of id: PeripheralID) -> [RemoteService] {
        guard let device = devicePath(id) else { return [] }
        return attributes.children(of: device).compactMap { service($0, of: id) }
    }

    /// The ATT MTU of a peripheral's link, if one of its characteristics states it.
    func mtu(of id: PeripheralID) -> Int? {
        devicePath(id).flatMap { attributes.mtu(of: $0) }
    }

    /// The number of GATT objects of a peripheral that were ignored because there were too many.
    func ignoredAttributes(of id: PeripheralID) -> Int {
        devicePath(id).map { attributes.ignored(of: $0) } ?? 0
    }

    private func service(_ path: String, of id: PeripheralID) -> RemoteService? {
        guard let known = attributes.services[path], let uuid = known.uuid else { return nil }
        var service = RemoteService(peripheral: id, uuid: uuid, handle: path, isPrimary: known.isPrimary)
        service.includes = known.includes
        service.characteristics = characteristics(ofService: path, of: id)
        service.descriptors = service.characteristics.flatMap(descriptors)
        return service
    }

    private func characteristics(ofService path: String, of id: PeripheralID) -> [RemoteCharacteristic] {
        guard let service = attributes.services[path]?.uuid else { return [] }
        return attributes.children(of: path).compactMap { path in
            guard let known = attributes.characteristics[path], let uuid = known.uuid else { return nil }
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
        attributes.children(of: characteristic.handle).compactMap { path in
            guard let uuid = attributes.descriptors[path]?.uuid else { return nil }
            return RemoteDescriptor(characteristic: characteristic, uuid: uuid, handle: path)
        }
    }

    private func peripheral(ofService path: String) -> PeripheralID? {
        devices[attributes.device(ofService: path)].flatMap { id(of: $0) }
    }
}

// Changes of the GATT tables.
extension ObjectTree {
    mutating func addService(_ path: String, _ changes: PropertyChanges) -> [Change] {
        guard attributes.add(Service(path: path, changes), at: path) else { return [] }
        return peripheral(ofService: path).map { [.tableGrew($0)] } ?? []
    }

    mutating func addCharacteristic(_ path: String, _ changes: PropertyChanges) -> [Change] {
        let characteristic = Characteristic(path: path, changes)
        guard attributes.add(characteristic, at: path) else { return [] }
        return peripheral(ofService: characteristic.servicePath).map { [.tableGrew($0)] } ?? []
    }

    /// Adds a descriptor, which does not change the table of characteristics.
    mutating func addDescriptor(_ path: String, _ changes: PropertyChanges) -> [Change] {
        attributes.add(Descriptor(path: path, changes), at: path)
        return []
    }

    mutating func updateCharacteristic(_ path: String, _ changes: PropertyChanges) -> [Change] {
        attributes.update(path) { $0.apply(changes) }
        return changes["Notifying"]?.bool == false ? [.notifyingEnded(path: path)] : []
    }

    mutating func removeService(_ path: String) -> [Change] {
        let changes = peripheral(ofService: path).map { [Change.tableShrank($0)] } ?? []
        let removed = attributes.children(of: path).flatMap { removeCharacteristic($0) }
        attributes.removeService(path)
        return changes + removed
    }

    mutating func removeCharacteristic(_ path: String) -> [Change] {
        guard let characteristic = attributes.removeCharacteristic(path) else { return [] }
        let id = peripheral(ofService: characteristic.servicePath)
        return [.characteristicRemoved(path: path)] + (id.map { [.tableShrank($0)] } ?? [])
    }

    mutating func removeDescriptor(_ path: String) -> [Change] {
        attributes.removeDescriptor(path)
        return []
    }
}
