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
    func admit(_ peripheral: PeripheralSpec) -> Bool {
        clients.contains { filters[$0]?.admits(peripheral) ?? peripheral.advertising.hasFlags }
    }

    /// True if some client wants a signal for every advertisement.
    var wantDuplicates: Bool {
        clients.contains { filters[$0]?.wantsDuplicates ?? false }
    }
}
