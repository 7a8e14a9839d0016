import GattherdDBus

/// A local controller and its state in bluetoothd.
struct SimulatedAdapter: Sendable {
    /// The state that is kept of a connected, trusted or paired device over a restart.
    struct Memory: Hashable, Sendable {
        let isTrusted: Bool
        let isBonded: Bool
    }

    let spec: AdapterSpec
    let path: String
    /// False while the adapter is unplugged.
    var isPresent: Bool
    var isPowered: Bool
    var alias: String?
    /// True if pairings make bonds.
    var isPairable = false
    var discovery = DiscoverySessions()
    /// The number of scans that were started.
    ///
    /// Timers of earlier scans are ignored.
    var scanEpoch = 0
    /// The earliest time of the next link: an adapter makes one link at a time.
    var isFreeAt = Duration.zero
    /// The remembered devices by peripheral, while bluetoothd or the adapter is absent.
    var remembered: [Int: Memory] = [:]
    /// The layout version in bluetoothd's attribute cache, by peripheral.
    ///
    /// Removed devices stay in it.
    var cache: [Int: Int] = [:]
    /// True while the controller answers nothing.
    var isHung = false
    /// The link ends that the controller did not report while it hung.
    var unreportedLinkEnds: [(DeviceKey, TruthEvent.DisconnectReason)] = []
    var faults = FaultList()

    private static let defaultAlias = "gattherd-sim"

    init(_ spec: AdapterSpec) {
        self.spec = spec
        path = "/org/bluez/" + spec.name
        isPresent = spec.isPresent
        isPowered = spec.isPowered
    }

    var isUsable: Bool { isPresent && isPowered && !isHung }
    var isDiscovering: Bool { !discovery.isEmpty }

    /// The properties of `Adapter1`.
    var properties: [Property] {
        [
            Property("Address", .string(spec.address)),
            Property("AddressType", .string("public")),
            Property("Name", .string(Self.defaultAlias)),
            Property("Alias", .string(alias ?? Self.defaultAlias)),
            Property("Class", .uint32(0)),
            Property("Powered", .boolean(isPowered)),
            Property("Discoverable", .boolean(false)),
            Property("DiscoverableTimeout", .uint32(180)),
            Property("Pairable", .boolean(isPairable)),
            Property("PairableTimeout", .uint32(0)),
            Property("Discovering", .boolean(isDiscovering)),
            Property("UUIDs", .strings([])),
            Property("Roles", .strings(["central", "peripheral"])),
        ]
    }
}
