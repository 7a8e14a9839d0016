import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// The objects of bluetoothd: signals in, changes out.
///
/// Properties may be absent, objects may come in any order, and paths may have any form. The tree is built from the
/// properties that name the parent, such as `Adapter`; paths are used only where these are missing.
struct ObjectTree {
    /// A change that a signal caused.
    enum Change: Hashable, Sendable {
        case event(CentralEvent)
        /// An adapter is ready for advertisement monitors.
        case monitorable
        /// An adapter is not used, as another one has its address.
        case adapterIgnored(AdapterObject)
        /// A watched peripheral has sent an advertisement.
        case advertised(HeardAdvertisement)
        /// A peripheral has gained attributes.
        case tableGrew(PeripheralID)
        /// A peripheral has lost attributes.
        case tableShrank(PeripheralID)
        case characteristicRemoved(path: String)
        /// BlueZ reports that no client is subscribed any more.
        case notifyingEnded(path: String)
    }

    private var peripherals = PeripheralObjects()
    private(set) var attributes = AttributeTables()
    /// The advertisements to report.
    var reports = AdvertisementReports()

    // MARK: - Queries

    var adapters: AdapterObjects { peripherals.adapters }
    var devices: DeviceObjects { peripherals.devices }

    func adapterPath(_ address: BluetoothAddress) -> String? { adapters.path(of: address) }

    /// The object of a peripheral; see ``PeripheralObjects/devicePath(_:)``.
    func devicePath(_ id: PeripheralID) -> String? { peripherals.devicePath(id) }

    /// All objects of a peripheral, in order.
    func devicePaths(_ id: PeripheralID) -> [String] { peripherals.devicePaths(id) }

    func status(_ id: PeripheralID) -> PeripheralStatus? { peripherals.status(id) }

    /// The pairing of a peripheral, of whichever object has one.
    func bond(_ id: PeripheralID) -> Bond? { peripherals.bond(id) }

    func id(of device: DeviceObject) -> PeripheralID? { peripherals.id(of: device) }

    /// The reason of a link's end, as far as known.
    func endReason(_ id: PeripheralID) -> DisconnectReason { peripherals.endReason(id) }

    /// The events of all objects; adapters last, so that their peripherals are known and need no scan.
    func announcements() -> [CentralEvent] { peripherals.announcements() }
}

// MARK: - Changes

extension ObjectTree {
    /// Removes all objects; keeps the number of links and the watched advertisements.
    mutating func clear() {
        peripherals.removeAll()
        reports.forgetAll()
        attributes = AttributeTables()
    }

    /// Replaces the tree by the reply of `GetManagedObjects`.
    mutating func load(_ objects: DBusValue) {
        clear()
        for object in objects.entries ?? [] {
            guard let path = object.key.string else { continue }
            _ = add(path, object.value, isSignalled: false)
        }
    }

    /// Adds interfaces of an object.
    mutating func add(_ path: String, _ interfaces: DBusValue, isSignalled: Bool = true) -> [Change] {
        (interfaces.entries ?? []).flatMap { entry in
            let changes = PropertyChanges(changed: entry.value, invalidated: [], isSignalled: isSignalled)
            return update(path, entry.key.string ?? "", changes, isNew: true)
        }
    }

    /// Applies changed and invalidated properties.
    mutating func change(
        _ path: String,
        _ interface: String,
        _ changed: DBusValue,
        _ invalidated: [String]
    ) -> [Change] {
        update(path, interface, PropertyChanges(changed: changed, invalidated: invalidated), isNew: false)
    }

    /// Applies all properties of a known object, from the answer to a call.
    mutating func refresh(_ path: String, _ interface: String, _ all: DBusValue) -> [Change] {
        update(path, interface, PropertyChanges(changed: all, invalidated: [], isSignalled: false), isNew: false)
    }

    /// Records that monitors were registered with an adapter, or removed.
    mutating func setMonitored(_ isMonitored: Bool, _ path: String) {
        peripherals.setMonitored(isMonitored, path)
    }

    /// Records that an adapter started or stopped to use the monitors.
    mutating func setMonitoring(_ isMonitoring: Bool, _ path: String) -> [Change] {
        peripherals.setMonitoring(isMonitoring, path)
    }

    /// Records the reason of a link's end, which may follow.
    func recordEndReason(_ path: String, _ reason: DisconnectReason) {
        peripherals.recordEndReason(path, reason)
    }

    /// Removes interfaces of an object.
    mutating func remove(_ path: String, _ interfaces: [String]) -> [Change] {
        interfaces.flatMap { interface -> [Change] in
            switch interface {
            case BlueZ.adapter: removeAdapter(path)
            case BlueZ.device: removeDevice(path)
            case BlueZ.gattService: removeService(path)
            case BlueZ.characteristic: removeCharacteristic(path)
            case BlueZ.descriptor: removeDescriptor(path)
            default: []
            }
        }
    }

    private mutating func update(
        _ path: String,
        _ interface: String,
        _ changes: PropertyChanges,
        isNew: Bool
    ) -> [Change] {
        switch interface {
        case BlueZ.adapter where isNew || adapters[path] != nil: updateAdapter(path, changes)
        case BlueZ.monitorManager where isNew: peripherals.addMonitorManager(path, changes)
        case BlueZ.device where isNew || devices[path] != nil: updateDevice(path, changes)
        case BlueZ.gattService where isNew: addService(path, changes)
        case BlueZ.characteristic where isNew: addCharacteristic(path, changes)
        case BlueZ.characteristic: updateCharacteristic(path, changes)
        case BlueZ.descriptor where isNew: addDescriptor(path, changes)
        default: []
        }
    }
}

// MARK: - Advertisements

extension ObjectTree {
    /// Applies a signal that repeats the last advertisement of its device; returns `nil` for all others.
    mutating func repeatAdvertisement(
        _ signal: borrowing DBusSignal,
        at now: SuspendingClock.Instant = .now
    ) -> [Change]? {
        guard let (last, repetition) = reports.repetition(in: signal) else { return nil }
        var advertisement = repetition.isAlone ? last.withoutFrames : last.advertisement
        advertisement.rssi = last.device.hearAgain(repetition.value.map { Int($0) })
        return report(advertisement, to: last.audience, of: last.device, at: now)
    }

    /// Applies a signal of nothing but an advertisement, and records it to recognize its repetitions.
    mutating func hear(
        _ signal: borrowing DBusSignal,
        _ changes: PropertyChanges,
        at now: SuspendingClock.Instant = .now
    ) -> [Change] {
        let path = signal.path
        guard let (device, id) = peripherals.heardDevice(path) else {
            return update(path, BlueZ.device, changes, isNew: false)
        }
        let frames = device.hear(changes)
        let advertisement = device.heard(id, frames)
        let audience = reports.audience(of: device, id)
        let reported = report(advertisement, to: audience, of: device, at: now)
        reports.record(advertisement.with(device.framesOfRepetition(frames)), audience, of: device, from: signal)
        return reported
    }

    /// Reports an advertisement that changes nothing else: each one to the watch, and in events from time to time.
    private func report(
        _ advertisement: HeardAdvertisement,
        to audience: AdvertisementReports.Audience,
        of device: DeviceObject,
        at now: SuspendingClock.Instant
    ) -> [Change] {
        let advertised = audience.isWatched ? [Change.advertised(advertisement)] : []
        guard audience.isPrompt || device.isReportDue(at: now), let status = status(advertisement.peripheral)
        else { return advertised }
        return advertised + [.event(.peripheralChanged(status))]
    }
}

// MARK: - Adapters and devices

extension ObjectTree {
    private mutating func updateDevice(_ path: String, _ changes: PropertyChanges) -> [Change] {
        reports.forget(path)
        var frames: [HeardAdvertisement.Frame]?
        let consequences = peripherals.changeDevice(path) { frames = $0.apply(changes, to: path) }
        let advertised = frames.flatMap { advertisement(path, $0) }.map { [Change.advertised($0)] } ?? []
        return advertised + consequences
    }

    private func advertisement(_ path: String, _ frames: [HeardAdvertisement.Frame]) -> HeardAdvertisement? {
        guard let device = devices[path], let id = id(of: device), reports.audience(of: device, id).isWatched else {
            return nil
        }
        return device.heard(id, frames)
    }

    /// Changes an adapter; it may be the owner of other devices then.
    private mutating func updateAdapter(_ path: String, _ changes: PropertyChanges) -> [Change] {
        reports.forgetAll()
        return peripherals.updateAdapter(path, changes)
    }

    private mutating func removeAdapter(_ path: String) -> [Change] {
        reports.forgetAll()
        let removed = devices.paths(ofAdapter: path).flatMap { removeDevice($0) }
        return removed + peripherals.removeAdapter(path)
    }

    private mutating func removeDevice(_ path: String) -> [Change] {
        reports.forget(path)
        for service in attributes.children(of: path) { _ = removeService(service) }
        return peripherals.changeDevice(path) { $0.remove(path) }
    }
}

// MARK: - Attributes

extension ObjectTree {
    /// The characteristics of a peripheral, by the paths of services and characteristics.
    func table(of id: PeripheralID) -> [RemoteCharacteristic] {
        devicePath(id).map { attributes.characteristics(ofDevice: $0, id) } ?? []
    }

    /// The whole table of a peripheral, by path.
    func services(of id: PeripheralID) -> [RemoteService] {
        devicePath(id).map { attributes.services(ofDevice: $0, id) } ?? []
    }

    /// The ATT MTU of a peripheral's link, if one of its characteristics states it.
    func mtu(of id: PeripheralID) -> Int? {
        devicePath(id).flatMap { attributes.mtu(of: $0) }
    }

    /// The number of GATT objects of a peripheral that were ignored because there were too many.
    func ignoredAttributes(of id: PeripheralID) -> Int {
        devicePath(id).map { attributes.ignored(of: $0) } ?? 0
    }

    private func peripheral(ofService path: String) -> PeripheralID? {
        peripherals.id(path: attributes.device(ofService: path))
    }

    private mutating func addService(_ path: String, _ changes: PropertyChanges) -> [Change] {
        guard attributes.add(ServiceObject(path: path, changes), at: path) else { return [] }
        return peripheral(ofService: path).map { [.tableGrew($0)] } ?? []
    }

    private mutating func addCharacteristic(_ path: String, _ changes: PropertyChanges) -> [Change] {
        let characteristic = CharacteristicObject(path: path, changes)
        guard attributes.add(characteristic, at: path) else { return [] }
        return peripheral(ofService: characteristic.servicePath).map { [.tableGrew($0)] } ?? []
    }

    /// Adds a descriptor, which does not change the table of characteristics.
    private mutating func addDescriptor(_ path: String, _ changes: PropertyChanges) -> [Change] {
        attributes.add(DescriptorObject(path: path, changes), at: path)
        return []
    }

    private mutating func updateCharacteristic(_ path: String, _ changes: PropertyChanges) -> [Change] {
        attributes.update(path) { $0.apply(changes) }
        return changes["Notifying"]?.bool == false ? [.notifyingEnded(path: path)] : []
    }

    private mutating func removeService(_ path: String) -> [Change] {
        let changes = peripheral(ofService: path).map { [Change.tableShrank($0)] } ?? []
        let removed = attributes.children(of: path).flatMap { removeCharacteristic($0) }
        attributes.removeService(path)
        return changes + removed
    }

    private mutating func removeCharacteristic(_ path: String) -> [Change] {
        guard let characteristic = attributes.removeCharacteristic(path) else { return [] }
        let id = peripheral(ofService: characteristic.servicePath)
        return [.characteristicRemoved(path: path)] + (id.map { [.tableShrank($0)] } ?? [])
    }

    private mutating func removeDescriptor(_ path: String) -> [Change] {
        attributes.removeDescriptor(path)
        return []
    }
}
