public import GattherdBluetooth
public import GattherdGATT
public import GattherdLog
public import GattherdMachines
public import GattherdModel
package import GattherdSync

/// The published state of links and adapters, for `status` and other readers.
public final class SupervisorStatus: Sendable {
    private struct Shared: Sendable {
        var links: [String: LinkStatus] = [:]
        var profiles: [String: [String]] = [:]
        var adapters: [BluetoothAddress: AdapterStatus] = [:]
        var reports: [BluetoothAddress: AdapterReport] = [:]
        var sightings: [String: Sighting] = [:]
        var traits: [String: AdvertisedTraits] = [:]
    }

    /// An advertisement of a device.
    public struct Sighting: Hashable, Sendable {
        public let time: Timestamp
        /// The signal strength in dBm.
        public let rssi: Int?
    }

    private let shared = Locked(Shared())
    /// The number of link changes.
    package let changes = LatestValue<UInt64>(0)

    init() {}

    /// The links of all devices, sorted by name.
    public var links: [LinkStatus] {
        shared.withLock { $0.links.values.sorted { $0.device < $1.device } }
    }

    /// All adapters, sorted by address.
    public var adapters: [AdapterStatus] {
        shared.withLock { $0.adapters.values.sorted { $0.address < $1.address } }
    }

    /// Returns the links, slots and problems of an adapter.
    public func report(of adapter: BluetoothAddress) -> AdapterReport? {
        shared.withLock { $0.reports[adapter] }
    }

    /// True if a full adapter has no slot for the device.
    func isWaitingForSlot(_ device: String) -> Bool {
        shared.withLock { $0.reports.values.contains { $0.waiting.contains(device) } }
    }

    public func link(of device: String) -> LinkStatus? {
        shared.withLock { $0.links[device] }
    }

    /// Returns the profiles that served the device's last link.
    public func profiles(of device: String) -> [String] {
        shared.withLock { $0.profiles[device] ?? [] }
    }

    /// Returns the device's last advertisement since the start; connected devices do not advertise.
    public func lastSighting(of device: String) -> Sighting? {
        shared.withLock { $0.sightings[device] }
    }

    /// Returns the advertised traits of a connected device; `nil` if it was not heard.
    func traits(of device: String) -> AdvertisedTraits? {
        shared.withLock { $0.traits[device] }
    }

    func set(_ traits: AdvertisedTraits, of device: String) {
        shared.withLock { $0.traits[device] = traits }
    }

    func set(_ sighting: Sighting, of device: String) {
        shared.withLock { $0.sightings[device] = sighting }
    }

    func set(_ status: LinkStatus) {
        shared.withLock { $0.links[status.device] = status }
        changes.update { $0 &+= 1 }
    }

    func remove(device: String) {
        shared.withLock { shared in
            shared.links[device] = nil
            shared.profiles[device] = nil
            shared.sightings[device] = nil
            shared.traits[device] = nil
        }
        changes.update { $0 &+= 1 }
    }

    func setProfiles(_ profiles: [String], of device: String) {
        shared.withLock { $0.profiles[device] = profiles }
    }

    func set(_ report: AdapterReport) {
        shared.withLock { $0.reports[report.address] = report }
    }

    /// Sets the adapter's status and returns the previous one.
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

/// Counters of recovery steps for adapters, and of losses on links that were up.
public struct RecoveryCounters: Sendable {
    public let discoveryRestarts = Counter("discovery_restarts_total", "Scans restarted because they found nothing")
    public let sessionRenewals = Counter("bus_session_renewals_total", "Reconnects to the bus as a new client")
    public let powerCycles = Counter("adapter_power_cycles_total", "Adapters switched off and on to repair them")
    public let silenceProbes = Counter("silence_probes_total", "Requests sent to silent devices to test their links")
    public let ignoredAttributes = Counter(
        "gatt_attributes_ignored_total",
        "GATT attributes ignored because their peripheral has too many"
    )
    /// Values may be missing.
    public let interruptions = Counter(
        "subscriptions_interrupted_total",
        "Subscriptions that ended or were renewed while the link was up"
    )

    /// All counters, for the metrics.
    public var all: [Counter] {
        [discoveryRestarts, sessionRenewals, powerCycles, silenceProbes, ignoredAttributes, interruptions]
    }

    public subscript(step: RecoveryLadder.Step) -> Counter {
        switch step {
        case .restartDiscovery: discoveryRestarts
        case .newBusConnection: sessionRenewals
        case .powerCycle: powerCycles
        }
    }
}
