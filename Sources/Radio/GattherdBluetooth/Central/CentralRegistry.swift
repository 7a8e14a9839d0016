/// The adapters, peripherals, links and scanners of a central.
struct CentralRegistry: Sendable {
    private(set) var isClosed = false
    /// True while the platform is there.
    var isAvailable = false
    /// True when this user may not use it.
    var isRefused = false
    /// Why it is not there; for people.
    var detail: String?
    var adapters: [BluetoothAddress: AdapterStatus] = [:]
    var peripherals: [PeripheralID: PeripheralStatus] = [:]
    /// The times of the last advertisements.
    var lastSeen: [PeripheralID: ContinuousClock.Instant] = [:]
    var links: [PeripheralID: Link] = [:]
    var connectionTasks: [ConnectionTask] = []
    var scanners: [UInt64: Scanner] = [:]
    var nextID: UInt64 = 0
    /// Grows when a scan has to be started again: the platform forgets it with the power or with bluetoothd.
    var discoverySession: UInt64 = 0
    /// The number of the newest link.
    var newestLink: UInt64 = 0

    /// True the first time.
    mutating func close() -> Bool {
        defer { isClosed = true }
        return !isClosed
    }

    /// Removes all peripherals.
    mutating func forgetPeripherals() {
        (adapters, peripherals, lastSeen) = ([:], [:], [:])
    }

    mutating func makeID() -> UInt64 {
        nextID += 1
        return nextID
    }

    mutating func takeScanners() -> [Scanner] {
        defer { scanners = [:] }
        return Array(scanners.values)
    }

    /// The adapter to use; `nil` when it is not there.
    func adapter(_ choice: Central.AdapterChoice) -> AdapterStatus? {
        switch choice {
        case .address(let address): adapters[address]
        case .name(let name): adapters.values.first { $0.name == name }
        case .automatic: sortedAdapters.first { $0.isPowered } ?? sortedAdapters.first
        }
    }

    /// `hci2` before `hci10`.
    var sortedAdapters: [AdapterStatus] {
        adapters.values.sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
    }

    func state(_ choice: Central.AdapterChoice) -> CentralState {
        guard !isClosed else { return .unknown }
        guard !isRefused else { return .unauthorized }
        guard isAvailable else { return detail == nil ? .unknown : .resetting }
        guard let adapter = adapter(choice) else { return .unsupported }
        return adapter.isPowered ? .poweredOn : .poweredOff
    }

    /// The scan that all scanners together require.
    func discoveryWish(_ choice: Central.AdapterChoice) -> DiscoveryRequest? {
        guard !scanners.isEmpty, let adapter = adapter(choice), adapter.isPowered else { return nil }
        let isNarrow = scanners.values.allSatisfy { !$0.filter.services.isEmpty }
        return DiscoveryRequest(
            adapter: adapter.address,
            filter: DiscoveryFilter(
                services: isNarrow ? Set(scanners.values.flatMap(\.filter.services)) : [],
                reportsDuplicates: scanners.values.contains(where: \.allowsDuplicates)
            ),
            session: discoverySession
        )
    }
}

/// A scan of the radio that serves all consumers.
struct DiscoveryRequest: Hashable, Sendable {
    let adapter: BluetoothAddress
    let filter: DiscoveryFilter
    let session: UInt64
}

/// Something to do after each connect, before the peripheral is ready.
struct ConnectionTask: Sendable {
    let id: UInt64
    /// `nil` for every peripheral.
    let peripheral: PeripheralID?
    let body: @Sendable (Peripheral) async throws -> Void
}
