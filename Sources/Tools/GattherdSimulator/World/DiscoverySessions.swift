import GattherdDBus
import GattherdGATT

/// The filter of `SetDiscoveryFilter`.
struct SimulatedDiscoveryFilter: Hashable, Sendable {
    private var services: Set<BluetoothUUID> = []
    private var minimumRSSI: Int16?
    private var pattern: String?
    private var isClassicOnly = false
    private(set) var wantsDuplicates = false

    static let keys = ["UUIDs", "RSSI", "Pathloss", "Transport", "DuplicateData", "Discoverable", "Pattern"]

    /// Parses the argument of `SetDiscoveryFilter`.
    ///
    /// - Throws: InvalidArguments for an unknown key, a wrong type or a value out of range.
    init(_ argument: DBusValue?) throws(DBusError) {
        guard let argument, let entries = argument.entries else { throw .invalidArguments }
        for entry in entries {
            guard let key = entry.key.string else { throw .invalidArguments }
            try set(key, entry.value.unwrapped)
        }
        guard minimumRSSI == nil || argument["Pathloss"] == nil else { throw .invalidArguments }
    }

    private mutating func set(_ key: String, _ value: DBusValue) throws(DBusError) {
        switch (key, value) {
        case ("UUIDs", .array(element: "s", let elements)): try setServices(elements)
        case ("RSSI", .int16(let rssi)) where (-127...20).contains(rssi): minimumRSSI = rssi
        case ("Pathloss", .uint16(let loss)) where loss <= 137: break
        case ("Transport", .string("auto")), ("Transport", .string("le")): break
        case ("Transport", .string("bredr")): isClassicOnly = true
        case ("DuplicateData", .boolean(let wanted)): wantsDuplicates = wanted
        case ("Discoverable", .boolean): break
        case ("Pattern", .string(let text)): pattern = text
        default: throw .invalidArguments
        }
    }

    private mutating func setServices(_ elements: [DBusValue]) throws(DBusError) {
        for element in elements {
            guard let uuid = element.string.flatMap({ BluetoothUUID($0) }) else { throw .invalidArguments }
            services.insert(uuid)
        }
    }

    /// True if the filter admits a peripheral by its advertising data and the strength of its signal.
    func admits(_ peripheral: PeripheralSpec, rssi: Int16) -> Bool {
        let advertising = peripheral.advertising
        guard !isClassicOnly, rssi >= minimumRSSI ?? .min else { return false }
        guard services.isEmpty || !services.isDisjoint(with: advertising.services) else { return false }
        guard let pattern else { return true }
        return peripheral.address.description.hasPrefix(pattern) || (advertising.name ?? "").hasPrefix(pattern)
    }
}

/// The clients that scan with an adapter, and their filters.
struct DiscoverySessions: Sendable {
    private var clients: Set<String> = []
    private var filters: [String: SimulatedDiscoveryFilter] = [:]

    var isEmpty: Bool { clients.isEmpty }

    func contains(_ client: String) -> Bool { clients.contains(client) }

    mutating func start(_ client: String) {
        clients.insert(client)
    }

    /// Ends a client's scan.
    ///
    /// The filter survives it.
    mutating func stop(_ client: String) {
        clients.remove(client)
    }

    mutating func setFilter(_ filter: SimulatedDiscoveryFilter?, of client: String) {
        filters[client] = filter
    }

    mutating func removeAll() {
        clients.removeAll()
        filters.removeAll()
    }

    /// True if some client's scan admits `peripheral`.
    ///
    /// Advertisements without Flags are visible only to clients with a filter.
    func admit(_ peripheral: PeripheralSpec, rssi: Int16) -> Bool {
        clients.contains { filters[$0]?.admits(peripheral, rssi: rssi) ?? peripheral.advertising.hasFlags }
    }

    /// True if some client wants a signal for every advertisement.
    var wantDuplicates: Bool {
        clients.contains { filters[$0]?.wantsDuplicates ?? false }
    }
}
