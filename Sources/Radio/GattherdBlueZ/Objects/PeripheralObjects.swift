import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// The adapter and device objects, and the peripherals that they show: an adapter's address and a device's address.
struct PeripheralObjects {
    typealias Change = ObjectTree.Change

    private(set) var adapters = AdapterObjects()
    private(set) var devices = DeviceObjects()

    // MARK: - Queries

    /// The object of a peripheral.
    ///
    /// BlueZ may keep a second object of one address when pairing reveals the address of a private one. One of them is
    /// used, see ``DeviceObjects/prefers(_:to:)``.
    func devicePath(_ id: PeripheralID) -> String? {
        devices.paths(of: id.address).lazy.filter { self.id(path: $0) == id }.max { devices.prefers($1, to: $0) }
    }

    /// All objects of a peripheral, in order.
    func devicePaths(_ id: PeripheralID) -> [String] {
        devices.paths(of: id.address).filter { self.id(path: $0) == id }.sorted()
    }

    func status(_ id: PeripheralID) -> PeripheralStatus? {
        guard var status = devicePath(id).flatMap({ devices[$0]?.status(id) }) else { return nil }
        // Keys belong to the address, whichever object shows them.
        if devices.paths(of: id.address).count > 1 { status.isPaired = bond(id)?.isPaired ?? false }
        return status
    }

    /// The pairing of a peripheral, of whichever object has one.
    func bond(_ id: PeripheralID) -> Bond? {
        let bonds = devicePaths(id).compactMap { devices[$0]?.bond(id) }
        var bond = bonds.first { $0.isPaired || $0.isBonded } ?? bonds.first(where: \.isTrusted) ?? bonds.first
        bond?.isConnected = bonds.contains(where: \.isConnected)
        return bond
    }

    /// The events of all objects; adapters last, so that their peripherals are known and need no scan.
    func announcements() -> [CentralEvent] {
        let adapters = adapters.all.sorted { $0.key < $1.key }.compactMap {
            $0.value.status.map(CentralEvent.adapterChanged)
        }
        return devices.all.keys.sorted().compactMap { status(path: $0).map(CentralEvent.peripheralChanged) } + adapters
    }

    /// The reason of a link's end, as far as known.
    func endReason(_ id: PeripheralID) -> DisconnectReason {
        guard let adapter = adapters.path(of: id.adapter) else { return .adapterLost }
        guard adapters[adapter]?.status?.isPowered == true else { return .adapterPoweredOff }
        let objects = devicePaths(id).compactMap { devices[$0] }
        guard let newest = objects.map(\.link).max() else { return .vanished }
        return objects.lazy.filter { $0.link == newest }.compactMap(\.endReason).first ?? .remote
    }

    /// The status of an object's peripheral.
    private func status(path: String) -> PeripheralStatus? {
        id(path: path).flatMap { status($0) }
    }

    func id(path: String) -> PeripheralID? {
        devices[path].flatMap { id(of: $0) }
    }

    func id(of device: DeviceObject) -> PeripheralID? {
        guard let adapter = adapters[device.adapterPath], !adapter.hasDuplicateAddress, let owner = adapter.address,
            let address = device.address
        else { return nil }
        return PeripheralID(adapter: owner, address: address)
    }

    // MARK: - Adapters

    /// Removes all objects; keeps the number of links.
    mutating func removeAll() {
        adapters.removeAll()
        devices.removeAll()
    }

    mutating func updateAdapter(_ path: String, _ changes: PropertyChanges) -> [Change] {
        let before = adapters[path]?.status
        adapters.apply(changes, to: path)
        if before == nil, let ignored = ignoreDuplicate(path) { return ignored }
        guard let after = adapters[path]?.status, after != before else { return [] }
        guard before != nil else { return arrival(of: path, after) }
        let change = Change.event(.adapterChanged(after))
        guard after.isPowered else { return [change] + devices.paths(ofAdapter: path).flatMap { endLink($0) } }
        return [change]
    }

    /// Ignores the adapter if another one has its address; returns `nil` if none has.
    private mutating func ignoreDuplicate(_ path: String) -> [Change]? {
        guard let adapter = adapters[path], adapters.markDuplicate(path) else { return nil }
        return adapter.hasDuplicateAddress ? [] : [.adapterIgnored(adapter)]
    }

    private func arrival(of path: String, _ status: AdapterStatus) -> [Change] {
        let devices = devices.paths(ofAdapter: path).compactMap(announcement)
        return [.event(.adapterChanged(status))] + devices + (adapters.isMonitorable(path) ? [.monitorable] : [])
    }

    private func announcement(_ device: String) -> Change? {
        status(path: device).map { .event(.peripheralChanged($0)) }
    }

    /// Adds the monitor manager, which BlueZ may signal before or after the adapter.
    mutating func addMonitorManager(_ path: String, _ changes: PropertyChanges) -> [Change] {
        let canMonitor = changes["SupportedMonitorTypes"]?.strings?.contains("or_patterns") ?? false
        adapters.setCanMonitor(canMonitor, path)
        return canMonitor && adapters.isMonitorable(path) ? [.monitorable] : []
    }

    /// Records that monitors were registered with an adapter, or removed.
    mutating func setMonitored(_ isMonitored: Bool, _ path: String) {
        adapters.setMonitored(isMonitored, path)
    }

    /// Records that an adapter started or stopped to use the monitors.
    mutating func setMonitoring(_ isMonitoring: Bool, _ path: String) -> [Change] {
        guard adapters.setMonitoring(isMonitoring, path) else { return [] }
        return adapters[path]?.status.map { [.event(.adapterChanged($0))] } ?? []
    }

    /// Removes an adapter whose devices are removed already.
    mutating func removeAdapter(_ path: String) -> [Change] {
        guard let status = adapters.remove(path)?.status else { return [] }
        let gone = [Change.event(.adapterRemoved(status.address))]
        guard let heir = adapters.useDuplicate(of: status.address) else { return gone }
        return gone + (adapters[heir]?.status.map { arrival(of: heir, $0) } ?? [])
    }

    // MARK: - Devices

    /// Records the reason of a link's end, which may follow.
    func recordEndReason(_ path: String, _ reason: DisconnectReason) {
        devices.recordEndReason(path, reason)
    }

    /// Ends the link of a device whose adapter was switched off, also without a signal for each.
    private mutating func endLink(_ path: String) -> [Change] {
        changeDevice(path) { $0.endLink(path) }
    }

    /// Returns a device that a scan has heard before, if no other object shows its peripheral.
    ///
    /// Of others, an advertisement may decide which object is used.
    func heardDevice(_ path: String) -> (device: DeviceObject, id: PeripheralID)? {
        guard let device = devices[path], device.isHeard, let id = id(of: device),
            devices.paths(of: id.address).count == 1
        else { return nil }
        return (device, id)
    }

    /// Changes one object; returns the changes of its peripheral, which another object may show as well.
    mutating func changeDevice(_ path: String, _ change: (inout DeviceObjects) -> Void) -> [Change] {
        let id = id(path: path)
        let before = id.flatMap { status($0) }
        change(&devices)
        if let before, let path = devicePath(before.id) { devices.raiseLink(path, to: before.link) }
        let changes = difference(before, id.flatMap { status($0) })
        guard let now = self.id(path: path), now != id, let shown = status(now) else { return changes }
        return changes + [.event(.peripheralChanged(shown))]
    }

    /// The changes between two statuses of one peripheral.
    private func difference(_ before: PeripheralStatus?, _ after: PeripheralStatus?) -> [Change] {
        guard let before else { return after.map { [.event(.peripheralChanged($0))] } ?? [] }
        guard let after else { return removal(before) }
        guard before != after else { return [] }
        let isDropped = before.isConnected && !after.isConnected
        return (isDropped ? [.event(.disconnected(after.id))] : []) + [.event(.peripheralChanged(after))]
    }

    private func removal(_ before: PeripheralStatus) -> [Change] {
        let dropped: [Change] = before.isConnected ? [.event(.disconnected(before.id))] : []
        return dropped + [.event(.peripheralRemoved(before.id))]
    }
}
