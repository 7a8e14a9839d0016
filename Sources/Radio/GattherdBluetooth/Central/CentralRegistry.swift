/// The adapters, peripherals, links and scanners of a central.
struct CentralRegistry: Sendable {
    private(set) var isClosed = false
    /// True while the platform is available.
    var isAvailable = false
    /// True if the bus denies this user access.
    var isRefused = false
    /// The reason of the unavailability, as text.
    var detail: String?
    var adapters: [BluetoothAddress: AdapterStatus] = [:]
    var peripherals: [PeripheralID: PeripheralStatus] = [:]
    /// The times of the last advertisements.
    var lastSeen: [PeripheralID: ContinuousClock.Instant] = [:]
    var links: [PeripheralID: Link] = [:]
    var connectionTasks: [ConnectionTask] = []
    var scanners: [UInt64: Scanner] = [:]
    var nextID: UInt64 = 0
    /// A number that grows when scans must be started again: with the power or with bluetoothd.
    var discoverySession: UInt64 = 0
    /// The number of the newest link.
    var newestLink: UInt64 = 0

    /// Marks the registry as closed; returns true the first time.
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

    /// The adapter to use; `nil` if it is missing.
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

/// A scan of the adapter that serves all consumers.
struct DiscoveryRequest: Hashable, Sendable {
    let adapter: BluetoothAddress
    let filter: DiscoveryFilter
    let session: UInt64
}

/// A task that runs after each connect, before the peripheral is ready.
struct ConnectionTask: Sendable {
    let id: UInt64
    /// The peripheral; `nil` for every peripheral.
    let peripheral: PeripheralID?
    let body: @Sendable (Peripheral) async throws -> Void
}
