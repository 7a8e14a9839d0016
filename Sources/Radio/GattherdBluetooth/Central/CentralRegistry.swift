/// The platform, the peripherals, links, scanners and connection tasks of a central.
struct CentralRegistry: Sendable {
    private(set) var isClosed = false
    var platform = PlatformState()
    var peripherals = KnownPeripherals()
    var scanners = ScannerTable()
    private(set) var links: [PeripheralID: Link] = [:]
    private(set) var connectionTasks: [ConnectionTask] = []
    private var lastID: UInt64 = 0

    /// Marks the registry as closed; returns true the first time.
    mutating func close() -> Bool {
        defer { isClosed = true }
        return !isClosed
    }

    mutating func makeID() -> UInt64 {
        lastID += 1
        return lastID
    }

    func state(_ choice: Central.AdapterChoice) -> CentralState {
        isClosed ? .unknown : platform.state(choice)
    }

    /// The addresses of the adapters that are on.
    var poweredAdapters: Set<BluetoothAddress> {
        isClosed ? [] : Set(platform.sortedAdapters.filter(\.isPowered).map(\.address))
    }

    /// The scan that all scanners together require.
    func discoveryRequest(_ choice: Central.AdapterChoice) -> DiscoveryRequest? {
        guard let filter = scanners.discoveryFilter, let adapter = platform.adapter(choice), adapter.isPowered else {
            return nil
        }
        return DiscoveryRequest(adapter: adapter.address, filter: filter, session: platform.discoverySession)
    }

    /// Forgets all peripherals, whose next advertisements are new to scanners: bluetoothd has gone or returned.
    mutating func forgetPeripherals() {
        peripherals.removeAll()
        scanners.forgetAll()
    }

    // MARK: - Links and connection tasks

    /// The number of links above which unused ones of unknown peripherals are removed.
    private static let manyLinks = 1024

    /// Adds a link that does not exist yet; returns the links that were removed for it.
    mutating func addLink(_ link: Link) -> [Link] {
        let unused =
            links.count < Self.manyLinks
            ? [] : links.values.filter { peripherals[$0.id] == nil && $0.isForgettable }
        for link in unused { links[link.id] = nil }
        links[link.id] = link
        return unused
    }

    /// Returns the link of a peripheral that the platform has removed; an unused link is removed as well.
    mutating func linkOfRemoved(_ id: PeripheralID) -> Link? {
        let link = links[id]
        if link?.isForgettable == true { links[id] = nil }
        return link
    }

    mutating func addConnectionTask(
        for peripheral: PeripheralID?,
        _ body: @escaping @Sendable (Peripheral) async throws -> Void
    ) -> ConnectionTaskID {
        let id = makeID()
        if !isClosed { connectionTasks.append(ConnectionTask(id: id, peripheral: peripheral, body: body)) }
        return ConnectionTaskID(value: id)
    }

    /// Removes and returns all tasks, whose objects should be released without a lock.
    mutating func removeConnectionTasks() -> [ConnectionTask] {
        defer { connectionTasks = [] }
        return connectionTasks
    }

    /// Removes a task; returns the former tasks, whose objects should be released without a lock.
    mutating func removeConnectionTask(_ id: ConnectionTaskID) -> [ConnectionTask] {
        defer { connectionTasks.removeAll { $0.id == id.value } }
        return connectionTasks
    }
}

/// A task that runs after each connect, before the peripheral is ready.
struct ConnectionTask: Sendable {
    let id: UInt64
    /// The peripheral; `nil` for every peripheral.
    let peripheral: PeripheralID?
    let body: @Sendable (Peripheral) async throws -> Void
}

/// The availability of bluetoothd and its adapters.
struct PlatformState: Sendable {
    private var isAvailable = false
    /// True if the bus denies this user access.
    private(set) var isRefused = false
    /// The reason of the unavailability, as text.
    private(set) var detail: String?
    private var adapters: [BluetoothAddress: AdapterStatus] = [:]
    /// A number that grows when scans must be started again: with the power or with bluetoothd.
    private(set) var discoverySession: UInt64 = 0

    /// Records the arrival of bluetoothd, whose adapters follow; returns the number for ``confirm(_:)``.
    mutating func arrive() -> UInt64 {
        (isRefused, adapters) = (false, [:])
        discoverySession += 1
        return discoverySession
    }

    /// Declares bluetoothd available even without adapters, unless it has gone since.
    mutating func confirm(_ session: UInt64) {
        if discoverySession == session { isAvailable = true }
    }

    mutating func leave(_ detail: String, isRefused: Bool) {
        (isAvailable, self.isRefused, self.detail, adapters) = (false, isRefused, detail, [:])
        discoverySession += 1
    }

    mutating func update(_ status: AdapterStatus) {
        isAvailable = true
        let before = adapters.updateValue(status, forKey: status.address)
        if status.isPowered, before?.isPowered != true { discoverySession += 1 }
    }

    mutating func removeAdapter(_ address: BluetoothAddress) {
        adapters[address] = nil
    }

    /// The adapter to use; `nil` if it is missing.
    func adapter(_ choice: Central.AdapterChoice) -> AdapterStatus? {
        switch choice {
        case .address(let address): adapters[address]
        case .name(let name): adapters.values.first { $0.name == name }
        case .automatic: sortedAdapters.first { $0.isPowered } ?? sortedAdapters.first
        }
    }

    /// The adapters in the order of their numbers: `hci2` before `hci10`.
    var sortedAdapters: [AdapterStatus] {
        adapters.values.sorted { ($0.name.utf8.count, $0.name) < ($1.name.utf8.count, $1.name) }
    }

    func state(_ choice: Central.AdapterChoice) -> CentralState {
        guard !isRefused else { return .unauthorized }
        guard isAvailable else { return detail == nil ? .unknown : .resetting }
        guard let adapter = adapter(choice) else { return .unsupported }
        return adapter.isPowered ? .poweredOn : .poweredOff
    }
}
