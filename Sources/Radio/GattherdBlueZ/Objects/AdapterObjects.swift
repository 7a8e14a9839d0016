import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// One `org.bluez.Adapter1` object.
struct AdapterObject: Hashable {
    /// The kernel's name, for example `hci0`; it may change when the adapter is plugged in again.
    let name: String
    private(set) var address: BluetoothAddress?
    /// A stack that does not report it has no switch.
    private var isPowered: Bool? = true
    private var isDiscovering: Bool?
    private var powerState: String?
    /// True if the adapter supports advertisement monitors with patterns.
    var canMonitor = false
    /// True if monitors are registered with the adapter.
    var isMonitored = false
    /// True if the adapter uses the monitors.
    var isMonitoring = false
    /// True if another adapter, which is in use, has the same address; then this one is not used.
    var hasDuplicateAddress = false

    init(path: String) {
        name = BlueZ.name(of: path)
    }

    /// The status; `nil` until the address is known, and while the adapter is not used.
    var status: AdapterStatus? {
        guard let address, !hasDuplicateAddress else { return nil }
        var status = AdapterStatus(
            address: address,
            name: name,
            isPowered: isPowered ?? false,
            isDiscovering: isDiscovering ?? false
        )
        status.isBlocked = powerState == "off-blocked"
        status.isMonitoring = isMonitoring
        return status
    }

    mutating func apply(_ changes: PropertyChanges) {
        if let text = changes["Address"]?.string { address = BluetoothAddress(text) }
        changes.update(&isPowered, "Powered", \.bool)
        changes.update(&isDiscovering, "Discovering", \.bool)
        changes.update(&powerState, "PowerState", \.string)
    }
}

/// The adapter objects by path; of several with one address only one is used.
struct AdapterObjects {
    private var objects: [String: AdapterObject] = [:]

    subscript(path: String) -> AdapterObject? { objects[path] }

    /// All adapters, with their paths.
    var all: [String: AdapterObject] { objects }

    /// The adapters that are not used, as others have their addresses.
    var duplicates: [AdapterObject] { objects.values.filter(\.hasDuplicateAddress) }

    /// The path of the adapter that is used for an address.
    func path(of address: BluetoothAddress) -> String? {
        objects.first { $0.value.address == address && !$0.value.hasDuplicateAddress }?.key
    }

    /// True if monitors can be registered with an adapter.
    func isMonitorable(_ path: String) -> Bool {
        objects[path].map { $0.canMonitor && !$0.isMonitored && $0.status != nil } ?? false
    }

    // MARK: - Changes

    /// Adds or changes an adapter.
    mutating func apply(_ changes: PropertyChanges, to path: String) {
        objects[path, default: AdapterObject(path: path)].apply(changes)
    }

    /// Adds or changes the monitor manager of an adapter.
    mutating func setCanMonitor(_ canMonitor: Bool, _ path: String) {
        objects[path, default: AdapterObject(path: path)].canMonitor = canMonitor
    }

    mutating func setMonitored(_ isMonitored: Bool, _ path: String) {
        objects[path]?.isMonitored = isMonitored
    }

    /// Records that an adapter started or stopped to use the monitors; returns false if nothing changed.
    mutating func setMonitoring(_ isMonitoring: Bool, _ path: String) -> Bool {
        guard objects[path]?.isMonitoring == !isMonitoring else { return false }
        objects[path]?.isMonitoring = isMonitoring
        return true
    }

    /// Stops using an adapter whose address another one has; returns false if none has.
    mutating func markDuplicate(_ path: String) -> Bool {
        guard let address = objects[path]?.address else { return false }
        let others = objects.filter { $0.key != path && !$0.value.hasDuplicateAddress }
        guard others.values.contains(where: { $0.address == address }) else { return false }
        objects[path]?.hasDuplicateAddress = true
        return true
    }

    /// Removes an adapter; returns it.
    mutating func remove(_ path: String) -> AdapterObject? { objects.removeValue(forKey: path) }

    /// Uses another adapter in place of a removed one; returns its path, or `nil` if none has the address.
    mutating func useDuplicate(of address: BluetoothAddress) -> String? {
        let duplicates = objects.filter { $0.value.hasDuplicateAddress && $0.value.address == address }
        guard let path = duplicates.keys.min() else { return nil }
        objects[path]?.hasDuplicateAddress = false
        return path
    }

    mutating func removeAll() {
        objects = [:]
    }
}
