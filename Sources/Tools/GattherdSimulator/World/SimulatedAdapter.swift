import GattherdDBus

/// A local controller and its state in bluetoothd.
struct SimulatedAdapter: Sendable {
    let spec: AdapterSpec
    /// The name in messages: with that of its gateway, if there are several.
    let label: String
    /// The names by which peripherals list the adapter.
    let names: Set<String>
    let path: String
    /// False while the adapter is unplugged.
    var isPresent: Bool
    var isPowered: Bool
    var alias: String?
    /// True if pairings make bonds.
    var isPairable = false
    var discovery = DiscoverySessions()
    /// True while the controller answers nothing.
    var isHung = false
    var faults = FaultList()

    private static let defaultAlias = "gattherd-sim"

    /// - Parameters:
    ///   - spec: The adapter.
    ///   - gateway: The name of its gateway; `nil` if there is only one.
    init(_ spec: AdapterSpec, of gateway: String?) {
        self.spec = spec
        label = gateway.map { $0 + "/" + spec.name } ?? spec.name
        names = gateway.map { [$0, $0 + "/" + spec.name] } ?? [spec.name]
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
