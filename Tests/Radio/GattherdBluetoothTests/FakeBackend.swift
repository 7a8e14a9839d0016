import GattherdBluetooth
import GattherdModel
import GattherdSync

/// A scripted backend with one adapter and any peripherals; no time passes by itself.
final class FakeBackend: ClientBackend {
    static let adapter = BluetoothAddress(value: 0x00005E_005300)
    static let strap = PeripheralID(adapter: adapter, address: BluetoothAddress(value: 0xC0FFEE_000001))
    static let dial = PeripheralID(adapter: adapter, address: BluetoothAddress(value: 0xC0FFEE_000002))

    /// The requests in order: `connect 1`, `read 2a19`, for example.
    let asked = LatestValue<[String]>([])
    let events: AsyncStream<CentralEvent>
    private let tell: AsyncStream<CentralEvent>.Continuation

    private struct World: Sendable {
        var statuses: [PeripheralID: PeripheralStatus] = [:]
        var links: UInt64 = 0
        var services: [RemoteService] = []
        var values: [String: [UInt8]] = [:]
        var failures: [String: [BluetoothError]] = [:]
        var hanging: Set<String> = []
        var sinks: [SubscriptionToken: (sink: any NotificationSink, handle: String)] = [:]
        var answers: [String: (handle: String, octets: [UInt8])] = [:]
        var greetings: [String: [UInt8]] = [:]
        var findsSuccessors = false
        var paired: [PairingMethod] = []
        /// The peripheral that is lost and removed right after its status was asked for while it is connected.
        var vanishing: (id: PeripheralID, whenHandled: @Sendable () async -> Void)?
    }

    private let world = Locked(World())
    private let releases = LatestValue<Set<String>>([])
    /// The number of calls in progress.
    let pending = LatestValue(0)
    /// The number of calls in progress when the central closed.
    let pendingAtClose = LatestValue<Int?>(nil)
    /// The number of calls of ``run()``.
    let runs = LatestValue(0)
    /// The ATT MTU of all links.
    let linkMTU = LatestValue(100)

    init(isPowered: Bool? = true) {
        (events, tell) = AsyncStream.makeStream(of: CentralEvent.self)
        guard let isPowered else { return }
        tell.yield(.available)
        setPowered(isPowered)
    }

    // MARK: - Scripting

    func say(_ event: CentralEvent) { tell.yield(event) }

    func setPowered(_ isPowered: Bool) {
        let status = AdapterStatus(address: Self.adapter, name: "hci0", isPowered: isPowered, isDiscovering: false)
        tell.yield(.adapterChanged(status))
    }

    /// A scan hears the peripheral.
    func advertise(_ id: PeripheralID, _ change: (inout PeripheralStatus) -> Void = { _ in }) {
        reportStatus(id) { status in
            status.rssi = status.rssi ?? -60
            change(&status)
            status.heard += 1
        }
    }

    /// The peripheral is known without a scan.
    func know(_ id: PeripheralID, _ change: (inout PeripheralStatus) -> Void = { _ in }) {
        reportStatus(id, change)
    }

    /// Ends the link with a reason.
    func drop(_ id: PeripheralID, _ reason: DisconnectReason = .remote) {
        setConnected(id, false)
        tell.yield(.linkEnded(id, reason))
    }

    func setConnected(_ id: PeripheralID, _ isConnected: Bool) {
        if !isConnected {
            world.withLock { $0.sinks = [:] }
            tell.yield(.disconnected(id))
        }
        let link = world.withLock { world in
            world.links += isConnected ? 1 : 0
            return world.links
        }
        reportStatus(id) { status in
            status.isConnected = isConnected
            if isConnected { status.link = link }
        }
    }

    func remove(_ id: PeripheralID) {
        world.withLock { $0.statuses[id] = nil }
        tell.yield(.peripheralRemoved(id))
    }

    private func reportStatus(_ id: PeripheralID, _ change: (inout PeripheralStatus) -> Void) {
        let status = world.withLock { world in
            var status = world.statuses[id] ?? PeripheralStatus(id: id)
            change(&status)
            world.statuses[id] = status
            return status
        }
        tell.yield(.peripheralChanged(status))
    }

    /// The next calls of that name fail, one error each.
    func fail(_ call: String, _ errors: BluetoothError...) {
        world.withLock { $0.failures[call, default: []] += errors }
    }

    /// Calls of that name, or of that name and object (`connect 1`), are not answered before ``release(_:)``.
    func hang(_ call: String) {
        world.withLock { _ = $0.hanging.insert(call) }
    }

    func release(_ call: String) {
        world.withLock { _ = $0.hanging.remove(call) }
        releases.update { $0.insert(call) }
    }

    func setServices(_ services: [RemoteService]) { world.withLock { $0.services = services } }
    func setValue(_ handle: String, _ octets: [UInt8]) { world.withLock { $0.values[handle] = octets } }
    /// Makes the characteristics of the services known before the whole table is.
    func findSuccessors() { world.withLock { $0.findsSuccessors = true } }
    func value(_ handle: String) -> [UInt8]? { world.withLock { $0.values[handle] } }
    var subscriptionCount: Int { world.withLock { $0.sinks.count } }
    var pairings: [PairingMethod] { world.withLock { $0.paired } }

    /// Makes the characteristic `other` notify `octets` after each write to `handle`.
    func answerWrites(to handle: String, with octets: [UInt8], at other: String) {
        world.withLock { $0.answers[handle] = (other, octets) }
    }

    /// Makes the characteristic notify `octets` before each reply to a subscription.
    func greet(from handle: String, with octets: [UInt8]) {
        world.withLock { $0.greetings[handle] = octets }
    }

    func notify(_ handle: String, _ octets: [UInt8]) {
        let sinks = world.withLock { world in world.sinks.filter { $0.value.handle == handle }.map { ($0, $1.sink) } }
        for (token, sink) in sinks { sink.receive(octets.span, for: token, at: Timestamp(microseconds: 1)) }
    }

    func waitUntilAsked(_ call: String, times: Int = 1) async {
        for await asked in asked.watch() where asked.filter({ $0 == call }).count >= times { return }
    }

    // MARK: - What the central asks

    private func ask(_ call: String, _ more: String = "") async throws(BluetoothError) {
        pending.update { $0 += 1 }
        let full = more.isEmpty ? call : "\(call) \(more)"
        asked.update { $0.append(full) }
        defer { pending.update { $0 -= 1 } }
        if let name = world.withLock({ world in [call, full].first { world.hanging.contains($0) } }) {
            for await released in releases.watch() where released.contains(name) { break }
        }
        if Task.isCancelled { throw BluetoothError(.cancelled, "cancelled") }
        let error = world.withLock { world -> BluetoothError? in
            guard world.failures[call]?.isEmpty == false else { return nil }
            return world.failures[call]?.removeFirst()
        }
        if let error { throw error }
    }

    private func last(_ id: PeripheralID) -> String { "\(id.address.value & 0xFF)" }

    func run() async {
        runs.update { $0 += 1 }
        for await _ in LatestValue(0).watch() {}
    }

    func catchUp(within limit: Duration) async {}

    func roundTrip() async {}
    func close() async {
        pendingAtClose.set(pending.state)
        asked.update { $0.append("close") }
        tell.finish()
    }

    func watch(_ advertisements: AdvertisementWatch) async {}

    func startDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {}

    func startDiscovery(on adapter: BluetoothAddress, filter: DiscoveryFilter) async throws(BluetoothError) {
        try await ask("startDiscovery", filter.reportsDuplicates ? "+" : "")
    }

    func stopDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) { try await ask("stopDiscovery") }

    func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) {
        try await ask("connect", last(peripheral))
        guard let status = world.withLock({ $0.statuses[peripheral] }) else {
            throw BluetoothError(.unknownPeripheral, "not seen")
        }
        if !status.isConnected { setConnected(peripheral, true) }
    }

    func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError) {
        try await ask("disconnect", last(peripheral))
        if world.withLock({ $0.statuses[peripheral]?.isConnected == true }) { drop(peripheral, .local) }
    }

    func status(of peripheral: PeripheralID) async -> PeripheralStatus? {
        let (status, whenHandled) = world.withLock { world in
            let status = world.statuses[peripheral]
            guard let vanishing = world.vanishing, vanishing.id == peripheral, status?.isConnected == true else {
                return (status, nil as (@Sendable () async -> Void)?)
            }
            world.vanishing = nil
            return (status, vanishing.whenHandled)
        }
        if let whenHandled {
            setConnected(peripheral, false)
            remove(peripheral)
            await whenHandled()
        }
        return status
    }

    /// The peripheral is lost and removed when the central asks for its status while it is connected.
    ///
    /// `whenHandled` waits until the central knows it.
    func vanishAtNextStatus(_ id: PeripheralID, whenHandled: @escaping @Sendable () async -> Void) {
        world.withLock { $0.vanishing = (id, whenHandled) }
    }

    func services(of peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) -> [RemoteService] {
        try await ask("services")
        return world.withLock { $0.services }
    }

    func successor(
        of characteristic: RemoteCharacteristic,
        timeout: Duration
    ) async throws(BluetoothError) -> RemoteCharacteristic? {
        world.withLock { world in
            guard world.findsSuccessors else { return nil }
            return world.services.flatMap(\.characteristics).first { $0.uuid == characteristic.uuid }
        }
    }

    func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        world.withLock { $0.services.flatMap(\.characteristics) }
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        try await ask("read", characteristic.handle)
        return world.withLock { $0.values[characteristic.handle] } ?? []
    }

    func read(_ descriptor: RemoteDescriptor) async throws(BluetoothError) -> [UInt8] {
        try await ask("read", descriptor.handle)
        return world.withLock { $0.values[descriptor.handle] } ?? []
    }

    func write(_ octets: [UInt8], to descriptor: RemoteDescriptor) async throws(BluetoothError) {
        try await ask("write", descriptor.handle)
        setValue(descriptor.handle, octets)
    }

    func write(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic,
        withResponse: Bool
    ) async throws(BluetoothError) {
        try await ask("write", characteristic.handle)
        setValue(characteristic.handle, octets)
        if let answer = world.withLock({ $0.answers[characteristic.handle] }) { notify(answer.handle, answer.octets) }
    }

    func writeWithoutResponse(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic
    ) async throws(BluetoothError) {
        try await ask("command", characteristic.handle)
        setValue(characteristic.handle, octets)
    }

    func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        token: SubscriptionToken,
        sink: any NotificationSink
    ) async throws(BluetoothError) {
        try await ask("subscribe", characteristic.handle + (path == .socket ? " by socket" : ""))
        world.withLock { $0.sinks[token] = (sink, characteristic.handle) }
        let greeting = world.withLock { $0.greetings[characteristic.handle] }
        if let greeting { notify(characteristic.handle, greeting) }
    }

    func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError) {
        let handle = world.withLock { $0.sinks.removeValue(forKey: token) }?.handle
        try await ask("unsubscribe", handle ?? "nothing")
    }

    func endSubscription(_ handle: String) {
        let token = world.withLock { world in
            let token = world.sinks.first { $0.value.handle == handle }?.key
            if let token { world.sinks[token] = nil }
            return token
        }
        if let token { tell.yield(.subscriptionEnded(token, Self.strap)) }
    }

    func mtu(of peripheral: PeripheralID) async throws(BluetoothError) -> Int? { linkMTU.state }

    func rssi(of peripheral: PeripheralID) async throws(BluetoothError) -> Int {
        try await ask("rssi")
        return -42
    }

    func pair(_ peripheral: PeripheralID, by method: PairingMethod, timeout: Duration) async throws(BluetoothError) {
        try await ask("pair")
        world.withLock { $0.paired.append(method) }
        reportStatus(peripheral) { $0.isPaired = true }
    }

    func setPowered(_ isPowered: Bool, adapter: BluetoothAddress) async throws(BluetoothError) {}
    func reconnectToBus() async {}
    func forget(_ peripheral: PeripheralID) async throws(BluetoothError) { try await ask("forget", last(peripheral)) }
}
