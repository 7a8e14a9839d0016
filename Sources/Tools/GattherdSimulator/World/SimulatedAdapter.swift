import GattherdDBus

/// One local controller as bluetoothd sees it.
struct SimulatedAdapter: Sendable {
    /// What is kept of a device that was connected, trusted or paired.
    struct Memory: Hashable, Sendable {
        let isTrusted: Bool
        let isBonded: Bool
    }

    let spec: AdapterSpec
    let path: String
    /// False while it is unplugged.
    var isPresent: Bool
    var isPowered: Bool
    var alias: String?
    /// Whether pairings make bonds.
    var isPairable = false
    /// The clients that scan.
    var sessions: Set<String> = []
    var filters: [String: SimulatedDiscoveryFilter] = [:]
    /// Grows when scanning starts.
    var scanEpoch = 0
    /// When it may make the next link: it makes one at a time.
    var isFreeAt = Duration.zero
    /// By peripheral: what it remembers over a restart or while it is unplugged.
    var remembered: [Int: Memory] = [:]
    /// By peripheral: which of its layouts bluetoothd has on disk, even of those that it removed.
    var cache: [Int: Int] = [:]
    /// True while the controller answers nothing.
    var isHung = false
    /// The ends of links that it was told of while it answered nothing.
    var unfinished: [(DeviceKey, TruthEvent.DisconnectReason)] = []
    var faults = FaultList()

    init(_ spec: AdapterSpec) {
        self.spec = spec
        path = "/org/bluez/" + spec.name
        isPresent = spec.isPresent
        isPowered = spec.isPowered
    }

    var isUsable: Bool { isPresent && isPowered && !isHung }
    var isDiscovering: Bool { !sessions.isEmpty }

    /// Whether some client's scan wants to see `peripheral`.
    ///
    /// One whose data has no Flags is shown only to those who set a filter.
    func isWanted(_ peripheral: PeripheralSpec) -> Bool {
        sessions.contains { filters[$0]?.admits(peripheral) ?? peripheral.advertising.hasFlags }
    }

    /// Whether some client wants a signal for every advertisement.
    var wantsDuplicates: Bool {
        sessions.contains { filters[$0]?.wantsDuplicates ?? false }
    }

    /// What bluetoothd forgets when the power goes.
    mutating func forgetClients() {
        sessions.removeAll()
        filters.removeAll()
    }
}
