public import GattherdBluetooth
public import GattherdDBus
public import GattherdGATT
public import GattherdLog
public import GattherdSync

/// The central role on org.bluez.
///
/// ``run()`` keeps the bus open and the objects known until ``close()``. Before that, and while the bus is lost,
/// operations fail with ``BluetoothError/Kind/serviceUnavailable``. Everything happens on one loop, so that signals and
/// calls never overlap.
///
/// ``CentralEvent/disconnected(_:)`` is published whenever a connected peripheral is connected no longer: BlueZ reports
/// it, or removes the object, or the adapter is switched off or removed. When bluetoothd or the bus is lost,
/// ``CentralEvent/unavailable(detail:)`` alone stands for all of that.
public actor BlueZCentral: ClientBackend {
    private let loop: EventLoop
    /// The executor for this actor's tasks: otherwise an unstructured task would resume on a thread of the pool.
    private let executor: LoopTaskExecutor
    private let ownsLoop: Bool
    private let limits: Limits
    private let parts: CentralParts
    private let connector: BluetoothdConnector
    private var isRunning = false
    /// The end of this central, once it has begun.
    private var closing: Task<Void, Never>?
    let address: DBusAddress
    public nonisolated let events: AsyncStream<CentralEvent>

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - address: The bus that bluetoothd is on.
    ///   - loop: The thread of all work; `nil` for a new thread, which ends with ``close()``.
    ///   - limits: The time limits of bluetoothd.
    ///   - log: The log.
    public init(
        bus address: DBusAddress,
        loop: EventLoop? = nil,
        limits: Limits = Limits(),
        log: Log
    ) {
        self.address = address
        let thread = loop ?? EventLoop(name: "bluez")
        let parts = CentralParts(bus: address, on: thread, limits: limits, log: log)
        self.loop = thread
        executor = LoopTaskExecutor(thread)
        ownsLoop = loop == nil
        self.limits = limits
        events = parts.events.stream
        self.parts = parts
        connector = BluetoothdConnector(parts, bus: address, on: thread, limits: limits, log: log)
    }

    /// The number of entries in each table that grows with links.
    var entryCounts: [Int] { parts.entryCounts }
    /// True while signals wait to be read together.
    var isReadingPaused: Bool { parts.client.bus?.isPausing ?? false }
    /// True while values wait in the notification sockets to be read together.
    var areSocketsPaused: Bool { parts.sockets.isPausing }

    // MARK: - Life

    /// Opens the bus and keeps it open until ``close()``, or until its task is cancelled.
    public func run() async {
        isRunning = true
        connector.requestRenewal = { self.startRenewal() }
        connector.registerAgent = { self.startRegistration() }
        await connector.run()
        connector.requestRenewal = {}
        connector.registerAgent = {}
        await close()
        isRunning = false
        if ownsLoop { loop.stop() }
    }

    private func startRenewal() { Task(executorPreference: executor) { await self.reconnectToBus() } }
    private func startRegistration() { Task(executorPreference: executor) { await self.registerAgent() } }

    public func roundTrip() {}

    /// Ends all subscriptions, then the connection to the bus; links stay up.
    ///
    /// A cancelled task waits for the end as well, and so do later callers.
    public func close() async {
        if closing == nil {
            connector.beginClosing()
            closing = Task(executorPreference: executor) { await self.leave() }
        }
        await closing?.value
    }

    private func leave() async {
        await connector.close()
        // An attempt to open the bus may be under way, which has a deadline.
        if ownsLoop, !isRunning { loop.stop() }
    }

    public func reconnectToBus() async {
        // A cancelled task would not wait for the answers that leaving needs.
        await Task(executorPreference: executor) { await self.renew() }.value
    }

    private func renew() async { await connector.renew() }

    public func isResponsive() async -> Bool { await parts.liveness.isResponsive() }

    public func catchUp(within limit: Duration) async {
        let deadline = SuspendingClock.now + limit
        // The number of round trips in which bluetoothd's loop sends what it has.
        for _ in 1...3 {
            let rest = deadline - SuspendingClock.now
            guard parts.objects.isLoaded, rest > .zero else { return }
            _ = try? await parts.client.call("/", "org.freedesktop.DBus.Peer", "Ping", within: rest)
        }
        parts.notifications.receiveWaiting()
    }
}

// MARK: - Discovery

extension BlueZCentral {
    public func startDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {
        // A sensor that only advertises may repeat the same payload for hours, and is present nevertheless.
        let filter = DiscoveryFilter(reportsDuplicates: parts.monitors.watch != nil)
        try await startDiscovery(on: adapter, filter: filter)
    }

    public func startDiscovery(
        on adapter: BluetoothAddress,
        filter: DiscoveryFilter
    ) async throws(BluetoothError) {
        try await parts.discovery.start(on: adapter, filter)
    }

    public func stopDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {
        try await parts.discovery.stop(on: adapter)
    }

    public func setPowered(_ isPowered: Bool, adapter: BluetoothAddress) async throws(BluetoothError) {
        try await parts.discovery.setPowered(isPowered, adapter)
    }

    public func watch(_ advertisements: AdvertisementWatch) async {
        // Others may register monitors meanwhile: those must have the new patterns.
        parts.monitors.setWatch(advertisements)
        await parts.monitors.unregister()
        await parts.discovery.setFilterOfRunning(DiscoveryFilter(reportsDuplicates: parts.monitors.watch != nil))
        await parts.monitors.register()
    }
}

// MARK: - Links

extension BlueZCentral {
    public func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) {
        try await parts.links.connect(peripheral, timeout: timeout)
    }

    public func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError) {
        try await parts.links.disconnect(peripheral)
    }

    public func forget(_ peripheral: PeripheralID) async throws(BluetoothError) {
        try await parts.links.forget(peripheral)
    }

    public func status(of peripheral: PeripheralID) async -> PeripheralStatus? {
        parts.objects.tree.status(peripheral)
    }

    public func mtu(of peripheral: PeripheralID) async throws(BluetoothError) -> Int? {
        try parts.reader.mtu(of: peripheral)
    }

    public func rssi(of peripheral: PeripheralID) async throws(BluetoothError) -> Int {
        try await parts.reader.rssi(of: peripheral)
    }
}

// MARK: - Attributes

extension BlueZCentral {
    public func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        let deadline = SuspendingClock.now.advanced(by: timeout)
        // The link of a cancelled attempt looks usable until bluetoothd has ended it.
        try await parts.links.waitForCancellation(of: peripheral, until: deadline)
        let rest = max(.zero, deadline - SuspendingClock.now)
        let table = try await parts.reader.characteristics(of: peripheral, timeout: rest) {
            parts.links.markActive(peripheral)
        }
        let ignored = parts.objects.tree.ignoredAttributes(of: peripheral)
        if ignored > 0 {
            parts.events.push(.tableCut(peripheral, kept: AttributeTables.most, ignored: ignored))
        }
        return table
    }

    public func services(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteService] {
        _ = try await characteristics(of: peripheral, timeout: timeout)
        return parts.objects.tree.services(of: peripheral)
    }

    public func successor(
        of characteristic: RemoteCharacteristic,
        timeout: Duration
    ) async throws(BluetoothError) -> RemoteCharacteristic? {
        try await parts.reader.successor(of: characteristic, timeout: timeout)
    }

    public func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        try await parts.reader.read(characteristic)
    }

    public func read(_ descriptor: RemoteDescriptor) async throws(BluetoothError) -> [UInt8] {
        try await parts.reader.read(descriptor)
    }

    public func write(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic,
        withResponse: Bool
    ) async throws(BluetoothError) {
        try await parts.writer.write(octets, to: characteristic, withResponse: withResponse)
    }

    public func write(_ octets: [UInt8], to descriptor: RemoteDescriptor) async throws(BluetoothError) {
        try await parts.writer.write(octets, to: descriptor)
    }

    public func writeWithoutResponse(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError) {
        try await parts.writer.writeWithoutResponse(octets, to: characteristic)
    }

    public func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        token: SubscriptionToken,
        sink: any NotificationSink
    ) async throws(BluetoothError) {
        let subscriber = NotificationChannel.Subscriber(token: token, sink: sink)
        try await parts.notifications.subscribe(to: characteristic, by: path, subscriber)
    }

    public func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError) {
        try await parts.notifications.unsubscribe(token)
    }
}

// MARK: - Pairing

extension BlueZCentral {
    public func answerPairing(with delegate: any PairingDelegate) async {
        parts.pairing.setDelegate(delegate)
        await registerAgent()
        // A cancelled task can make no calls, but the delegate is kept.
        if Task.isCancelled { startRegistration() }
    }

    private func registerAgent() async {
        guard await !parts.pairing.registerAgent() else { return }
        // bluetoothd is busy.
        Task(executorPreference: executor) { await self.registerAgentLater() }
    }

    private func registerAgentLater() async {
        if await parts.waiters.sleep(for: limits.retry.upperBound) == .deadline { await registerAgent() }
    }

    public func pair(
        _ peripheral: PeripheralID,
        by method: PairingMethod,
        timeout: Duration
    ) async throws(BluetoothError) {
        let path = try parts.objects.devicePath(peripheral)
        guard try await !parts.pairing.pair(peripheral, by: method, timeout: timeout) else { return }
        // An attacker could have answered in its place. A cancelled task could not call any more.
        let removal = await Task(executorPreference: executor) { await self.remove(path, of: peripheral.adapter) }.value
        let end = removal.map { "could not be removed: \($0)" } ?? "was removed"
        throw BluetoothError(.authentication, "the peripheral paired without its passkey, and \(end)")
    }

    /// Removes a peripheral by its object, because pairing may reveal another address; returns the error.
    private func remove(_ path: String, of adapter: BluetoothAddress) async -> BluetoothError? {
        do throws(BluetoothError) {
            try await parts.links.forget(path, of: adapter)
            return nil
        } catch {
            return error
        }
    }

    public func bonds() async throws(BluetoothError) -> [Bond] { try parts.pairing.bonds() }
}
