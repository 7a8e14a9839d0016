import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// The copy of bluetoothd's objects that all operations share; on the Bluetooth thread only.
final class BlueZObjects {
    private let client: BluetoothdClient
    private(set) var tree = ObjectTree()
    /// True once the tree holds all objects of the current bluetoothd.
    private(set) var isLoaded = false
    /// Called with the changes of each update.
    var onChange: ([ObjectTree.Change]) -> Void = { _ in }

    init(_ client: BluetoothdClient) {
        self.client = client
    }

    // MARK: - Changes

    /// Replaces all objects by the reply of `GetManagedObjects`.
    func load(_ objects: DBusValue) {
        tree.load(objects)
        isLoaded = true
    }

    /// Removes all objects.
    func clear() {
        tree.clear()
        isLoaded = false
    }

    /// Changes the tree and reports the consequences.
    func update(_ change: (inout ObjectTree) -> [ObjectTree.Change]) {
        let changes = change(&tree)
        onChange(changes)
    }

    /// Applies a signal that repeats the last advertisement of its device; returns false for all others.
    func repeatAdvertisement(_ signal: borrowing DBusSignal) -> Bool {
        guard let changes = tree.repeatAdvertisement(signal) else { return false }
        onChange(changes)
        return true
    }

    /// Applies a signal of nothing but an advertisement.
    func hear(_ signal: borrowing DBusSignal, _ changes: PropertyChanges) {
        let changes = tree.hear(signal, changes)
        onChange(changes)
    }

    /// Changes a part of the tree that no state depends on.
    func edit(_ change: (inout ObjectTree) -> Void) {
        change(&tree)
    }

    /// Reads a device's properties into the tree.
    func refresh(_ path: String, within limit: Duration) async throws(DBusError) {
        let owner = client.owner
        try await client.call(
            path,
            BlueZ.properties,
            "GetAll",
            [.string(BlueZ.device)],
            within: limit,
            onReply: { [weak self] outcome in
                guard let self, client.owner == owner, let all = try? outcome.get().first else { return }
                update { $0.refresh(path, BlueZ.device, all) }
            }
        )
    }

    // MARK: - Queries

    /// - Throws: `serviceUnavailable` unless bluetoothd is there and its objects are known.
    func requireLoaded() throws(BluetoothError) {
        guard isLoaded else { throw BluetoothError(.serviceUnavailable, "bluetoothd is not on the bus") }
    }

    func adapterPath(_ address: BluetoothAddress) throws(BluetoothError) -> String {
        try requireLoaded()
        guard let path = tree.adapterPath(address) else {
            throw BluetoothError(.adapterUnavailable, "there is no adapter \(address)")
        }
        return path
    }

    func devicePath(_ id: PeripheralID) throws(BluetoothError) -> String {
        _ = try adapterPath(id.adapter)
        guard let path = tree.devicePath(id) else {
            throw BluetoothError(.unknownPeripheral, "\(id.address) has not been seen, or was removed")
        }
        return path
    }

    func status(_ id: PeripheralID) throws(BluetoothError) -> PeripheralStatus {
        _ = try devicePath(id)
        guard let status = tree.status(id) else {
            throw BluetoothError(.unknownPeripheral, "\(id.address) was removed")
        }
        return status
    }

    /// The status of a connected peripheral.
    @discardableResult
    func connectedStatus(_ id: PeripheralID) throws(BluetoothError) -> PeripheralStatus {
        let status = try status(id)
        guard status.isConnected else { throw BluetoothError(.notConnected, "\(id.address) is not connected") }
        return status
    }

    /// - Throws: `unknownAttribute` if the characteristic is not, or no longer, there.
    func path(of characteristic: RemoteCharacteristic) throws(BluetoothError) -> String {
        try connectedStatus(characteristic.peripheral)
        guard tree.attributes.characteristics[characteristic.handle] != nil else {
            throw BluetoothError(.unknownAttribute, "\(characteristic.uuid) is no longer there")
        }
        return characteristic.handle
    }

    func path(of descriptor: RemoteDescriptor) throws(BluetoothError) -> String {
        _ = try path(of: descriptor.characteristic)
        guard tree.attributes.descriptors[descriptor.handle] != nil else {
            throw BluetoothError(.unknownAttribute, "\(descriptor.uuid) is no longer there")
        }
        return descriptor.handle
    }
}
