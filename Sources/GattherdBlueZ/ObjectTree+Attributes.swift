import GattherdBluetooth
import GattherdDBus

// The GATT tables.
extension ObjectTree {
    /// The characteristics of a peripheral, by path.
    func table(of id: PeripheralID) -> [RemoteCharacteristic] {
        guard let device = devicePath(id) else { return [] }
        return characteristics.sorted { $0.key < $1.key }.compactMap { path, characteristic in
            guard devicePath(of: characteristic) == device else { return nil }
            return remote(path, characteristic, of: id)
        }
    }

    /// The whole table of a peripheral, by path.
    func services(of id: PeripheralID) -> [RemoteService] {
        guard let device = devicePath(id) else { return [] }
        let paths = services.filter { $0.value.devicePath == device }.keys.sorted()
        return paths.compactMap { service($0, of: id) }
    }

    /// The ATT MTU of a peripheral's link, where one of its characteristics tells it.
    func mtu(of id: PeripheralID) -> Int? {
        guard let device = devicePath(id) else { return nil }
        return characteristics.values.lazy.filter { devicePath(of: $0) == device }.compactMap(\.mtu).first
    }

    private func service(_ path: String, of id: PeripheralID) -> RemoteService? {
        guard let known = services[path], let uuid = known.uuid else { return nil }
        var service = RemoteService(peripheral: id, uuid: uuid, handle: path, isPrimary: known.isPrimary)
        service.includes = known.includes
        for (path, characteristic) in characteristics.sorted(by: { $0.key < $1.key })
        where characteristic.servicePath == service.handle {
            guard let remote = remote(path, characteristic, of: id) else { continue }
            service.characteristics.append(remote)
            service.descriptors += descriptors(of: remote)
        }
        return service
    }

    private func remote(_ path: String, _ known: Characteristic, of id: PeripheralID) -> RemoteCharacteristic? {
        guard let uuid = known.uuid, let service = services[known.servicePath]?.uuid else { return nil }
        return RemoteCharacteristic(
            peripheral: id,
            service: service,
            uuid: uuid,
            handle: path,
            properties: known.properties
        )
    }

    private func descriptors(of characteristic: RemoteCharacteristic) -> [RemoteDescriptor] {
        descriptors.sorted { $0.key < $1.key }.compactMap { path, known in
            guard known.characteristicPath == characteristic.handle, let uuid = known.uuid else { return nil }
            return RemoteDescriptor(characteristic: characteristic, uuid: uuid, handle: path)
        }
    }

    private func devicePath(of characteristic: Characteristic) -> String {
        services[characteristic.servicePath]?.devicePath ?? BlueZ.parent(of: characteristic.servicePath)
    }

    private func peripheral(ofService path: String) -> PeripheralID? {
        devices[services[path]?.devicePath ?? BlueZ.parent(of: path)].flatMap { id(of: $0) }
    }
}

// News of them.
extension ObjectTree {
    mutating func addService(_ path: String, _ news: PropertyNews) -> [Change] {
        let service = Service(path: path, news)
        guard services.updateValue(service, forKey: path) != service else { return [] }
        return peripheral(ofService: path).map { [.tableGrew($0)] } ?? []
    }

    mutating func addCharacteristic(_ path: String, _ news: PropertyNews) -> [Change] {
        let characteristic = Characteristic(path: path, news)
        guard characteristics.updateValue(characteristic, forKey: path) != characteristic else { return [] }
        return peripheral(ofService: characteristic.servicePath).map { [.tableGrew($0)] } ?? []
    }

    /// Who has the table need not read it anew for a descriptor's sake.
    mutating func addDescriptor(_ path: String, _ news: PropertyNews) -> [Change] {
        descriptors[path] = Descriptor(path: path, news)
        return []
    }

    mutating func updateCharacteristic(_ path: String, _ news: PropertyNews) -> [Change] {
        characteristics[path]?.apply(news)
        return news["Notifying"]?.bool == false ? [.notifyingEnded(path: path)] : []
    }

    mutating func removeService(_ path: String) -> [Change] {
        let changes = peripheral(ofService: path).map { [Change.tableShrank($0)] } ?? []
        let children = characteristics.filter { $0.value.servicePath == path }.keys.sorted()
        let removed = children.flatMap { removeCharacteristic($0) }
        services[path] = nil
        return changes + removed
    }

    mutating func removeCharacteristic(_ path: String) -> [Change] {
        guard let characteristic = characteristics.removeValue(forKey: path) else { return [] }
        for descriptor in descriptors.filter({ $0.value.characteristicPath == path }).keys {
            descriptors[descriptor] = nil
        }
        let id = peripheral(ofService: characteristic.servicePath)
        return [.characteristicRemoved(path: path)] + (id.map { [.tableShrank($0)] } ?? [])
    }

    mutating func removeDescriptor(_ path: String) -> [Change] {
        descriptors[path] = nil
        return []
    }
}
