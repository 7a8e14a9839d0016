public import GattherdBluetooth
public import GattherdGATT
public import GattherdMachines
public import GattherdModel
import GattherdSync

/// What is true of the herd now, for `status` and other onlookers.
public final class SupervisorStatus: Sendable {
    private struct Shared: Sendable {
        var statuses: [String: LinkStatus] = [:]
        var profiles: [String: [String]] = [:]
        var adapters: [BluetoothAddress: AdapterStatus] = [:]
        var reports: [BluetoothAddress: AdapterReport] = [:]
        var sightings: [String: Sighting] = [:]
    }

    /// An advertisement of a device.
    public struct Sighting: Hashable, Sendable {
        public let time: Timestamp
        /// In dBm.
        public let rssi: Int?
    }

    private let shared = Locked(Shared())
    /// The number of changes of links.
    let changes = LatestValue<UInt64>(0)

    init() {}

    /// All devices' links, by name.
    public var statuses: [LinkStatus] {
        shared.withLock { $0.statuses.values.sorted { $0.device < $1.device } }
    }

    /// All adapters, by address.
    public var adapters: [AdapterStatus] {
        shared.withLock { $0.adapters.values.sorted { $0.address < $1.address } }
    }

    /// Links, slots and trouble of an adapter.
    public func report(of adapter: BluetoothAddress) -> AdapterReport? {
        shared.withLock { $0.reports[adapter] }
    }

    public func status(of device: String) -> LinkStatus? {
        shared.withLock { $0.statuses[device] }
    }

    /// The profiles that served the device's last link.
    public func profiles(of device: String) -> [String] {
        shared.withLock { $0.profiles[device] ?? [] }
    }

    /// The device's last advertisement since the start; while it is connected it has none.
    public func lastSighting(of device: String) -> Sighting? {
        shared.withLock { $0.sightings[device] }
    }

    func set(_ sighting: Sighting, of device: String) {
        shared.withLock { $0.sightings[device] = sighting }
    }

    func set(_ status: LinkStatus) {
        shared.withLock { $0.statuses[status.device] = status }
        changes.update { $0 &+= 1 }
    }

    func remove(device: String) {
        shared.withLock { shared in
            shared.statuses[device] = nil
            shared.profiles[device] = nil
            shared.sightings[device] = nil
        }
        changes.update { $0 &+= 1 }
    }

    func setProfiles(_ profiles: [String], of device: String) {
        shared.withLock { $0.profiles[device] = profiles }
    }

    func set(_ report: AdapterReport) {
        shared.withLock { $0.reports[report.address] = report }
    }

    /// Gives what was known of the adapter before.
    func set(_ adapter: AdapterStatus) -> AdapterStatus? {
        shared.withLock { $0.adapters.updateValue(adapter, forKey: adapter.address) }
    }

    func remove(adapter: BluetoothAddress) {
        shared.withLock { $0.adapters[adapter] = nil }
    }

    func clearAdapters() {
        shared.withLock { $0.adapters = [:] }
    }
}
