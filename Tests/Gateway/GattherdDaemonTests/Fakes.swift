import GattherdBluetooth
import GattherdDaemon
import GattherdGATT
import GattherdModel
import GattherdSync

/// A store in memory that can be made to fail.
actor FakeStore: ReadingStore {
    private(set) var readings: [(stream: String, source: ReadingSource, values: [SampleValue])] = []
    private(set) var rejects: [Reject] = []
    private(set) var events: [LifecycleEvent] = []
    private(set) var devices: [DeviceRecord] = []
    private(set) var held: Set<String> = []
    private(set) var marks: [String: UInt32]
    private(set) var cursors: [RecordCursor.Key: RecordCursor] = [:]
    private(set) var commits = 0
    private(set) var largestCommit = 0
    private(set) var unstored = 0
    private var failures = 0
    private var isFull = false
    private var recallFailures = 0
    private var holdFailures = 0
    private var eventFailures = 0
    let changes = LatestValue(0)
    let recordsDevices = LatestValue(true)

    init(marks: [String: UInt32] = [:]) { self.marks = marks }

    func failToRecall(_ count: Int) { recallFailures = count }
    func failToReportHolds(_ count: Int) { holdFailures = count }
    func failToRecord(_ count: Int) { eventFailures = count }
    func failNext(_ count: Int) { failures = count }
    /// Takes batches without storing them.
    func setFull(_ isFull: Bool) { self.isFull = isFull }
    func hold(_ device: String) { held.insert(device) }

    func append(_ batch: ReadingBatch) async throws(StoreFault) -> Bool {
        if failures > 0 {
            failures -= 1
            throw StoreFault("disk full", .full)
        }
        if isFull {
            unstored += 1
            changes.update { $0 += 1 }
            return false
        }
        commits += 1
        largestCommit = max(largestCommit, batch.readings.count)
        for reading in batch.readings {
            let values = batch.samples[reading.samples].map(\.value)
            readings.append((reading.stream.stream, reading.source, values))
        }
        rejects += batch.rejects
        marks.merge(batch.replayMarks) { max($0, $1) }
        cursors.merge(batch.cursors) { $1 }
        changes.update { $0 += 1 }
        return true
    }

    func replayMarks() async throws(StoreFault) -> [String: UInt32] {
        if recallFailures > 0 {
            recallFailures -= 1
            throw StoreFault("not now", .full)
        }
        return marks
    }

    func recordCursors() async throws(StoreFault) -> [RecordCursor] { Array(cursors.values) }

    func record(_ events: [LifecycleEvent]) async throws(StoreFault) {
        if eventFailures > 0 {
            eventFailures -= 1
            throw StoreFault("disk full", .full)
        }
        self.events += events
        changes.update { $0 += 1 }
    }

    /// Hangs while ``recordsDevices`` is false.
    func record(_ device: DeviceRecord, seenAt: Timestamp) async throws(StoreFault) {
        for await records in recordsDevices.watch() where records { break }
        devices.append(device)
    }

    func setHeld(_ device: String, _ isHeld: Bool) async throws(StoreFault) {
        if isHeld { held.insert(device) } else { held.remove(device) }
    }

    func heldDevices() async throws(StoreFault) -> Set<String> {
        if holdFailures > 0 {
            holdFailures -= 1
            throw StoreFault("not now", .full)
        }
        return held
    }

    /// Waits until `condition` holds; the test's time limit bounds it.
    func wait(for condition: @Sendable (isolated FakeStore) -> Bool) async {
        for await _ in changes.watch() where condition(self) { return }
    }
}

/// Collects all announcements.
final class FakeAnnouncer: Announcer {
    let statuses = LatestValue<[String: [LinkState]]>([:])
    let removed = LatestValue<[String]>([])
    let descriptions = LatestValue<[String: DeviceDescription]>([:])

    func update(_ status: LinkStatus) {
        statuses.update { $0[status.device, default: []].append(status.state) }
    }

    func describe(_ device: DeviceDescription) {
        descriptions.update { $0[device.device] = device }
    }

    func remove(device: String) { removed.update { $0.append(device) } }
    func announce(_ event: LifecycleEvent) {}

    func wait(forRemovalOf device: String) async {
        for await removed in removed.watch() where removed.contains(device) { return }
    }

    func wait(for device: String, _ state: LinkState, times: Int = 1) async {
        for await all in statuses.watch() where (all[device] ?? []).filter({ $0 == state }).count >= times { return }
    }
}

/// A profile of one byte with one control; an empty payload is rejected.
struct OctetProfile: Profile {
    let name: String
    let title = "One octet"
    var services: [BluetoothUUID]
    var isOptIn = false
    var characteristics: [CharacteristicDescriptor]
    var advertisements: [AdvertisementDescriptor] = []
    var controls: [ControlDescriptor] = []
    var tasks: [ConnectionTaskDescriptor] = []
    var downloads: [DownloadDescriptor] = []
    let origin = "test"
    var revision = 0

    init(_ name: String, service: UInt16, characteristic: UInt16, isRequired: Bool = false) {
        self.name = name
        services = [BluetoothUUID(service)]
        characteristics = [
            CharacteristicDescriptor(
                uuid: BluetoothUUID(characteristic),
                stream: name,
                metrics: [MetricDescriptor(name: "octet")],
                subscription: .notify,
                isReadAtConnect: true,
                isRequired: isRequired
            )
        ]
    }

    func makeDecoder() -> any PayloadDecoder { OctetDecoder() }

    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] {
        if value == .trigger { return [1] }
        guard case .integer(let number) = value, let octet = UInt8(exactly: number) else {
            throw .invalidValue(value.description, expected: "an octet")
        }
        return [octet]
    }
}

private final class OctetDecoder: PayloadDecoder {
    func decode(_ payload: Span<UInt8>, characteristic: Int, into samples: inout [Sample]) throws(PayloadError) {
        var cursor = PayloadCursor(payload)
        samples.append(Sample(metric: 0, value: .integer(Int64(try cursor.u8()))))
    }
}

/// A Bluetooth central whose behaviour the test sets.
final class FakeCentral: CentralBackend {
    struct State {
        var tables: [BluetoothAddress: [RemoteCharacteristic]] = [:]
        var failConnects = 0
        /// The number of attempts to connect that are not answered until they are cancelled.
        var hangingConnects = 0
        /// The number of disconnects that have no effect and are not answered until they are cancelled.
        var hangingDisconnects = 0
        var readValue: [UInt8] = [7]
        var refusedSubscription: BluetoothError?
        /// The paths of all requested subscriptions.
        var paths: [NotificationPath] = []
        /// The number of subscriptions that end right after they are made.
        var endingSubscriptions = 0
        /// The value that each characteristic notifies right after it is subscribed.
        var notifiedAtOnce: [UInt8]?
        var sinks: [SubscriptionToken: (any NotificationSink, RemoteCharacteristic)] = [:]
        var connectErrors: [BluetoothError] = []
        var readErrors: [BluetoothError] = []
        var writeErrors: [BluetoothError] = []
        /// The written value that always fails.
        var refusedWrite: [UInt8]?
        /// The values that are notified when the daemon catches up, as if they had waited in the bus.
        var waiting: [[UInt8]] = []
        /// The number of reads that are never answered.
        var hangingReads = 0
        /// The number of power changes that are not answered until they are cancelled.
        var hangingPowerChanges = 0
        /// False while the platform does not answer at all.
        var isResponsive = true
        var pairingError: BluetoothError?
        var pairingDelegate: (any PairingDelegate)?
        var bonds: [Bond] = []
        var watch: AdvertisementWatch?
        /// The notified response to each written value.
        var answers: [[UInt8]: [UInt8]] = [:]
        /// The descriptors and their values; `nil` for a descriptor that is not readable.
        var descriptors: [(RemoteDescriptor, [UInt8]?)] = []
    }

    /// A call of the central.
    enum Call: Hashable, Sendable {
        case connect, connectCancelled, disconnect
        case subscribe, read, unsubscribe, startDiscovery, stopDiscovery,
            reconnectToBus, watch
        case setPowered(Bool)
        case write([UInt8])
        case readDescriptor(BluetoothUUID)
        case pair(PairingMethod)
        case forget
        case catchUp
        case roundTrip
    }

    let events: AsyncStream<CentralEvent>
    let tell: AsyncStream<CentralEvent>.Continuation
    let state = Locked(State())
    /// Locked while a notification is delivered, so that all sinks receive notifications in one order.
    private let delivery = Locked(())
    let calls = LatestValue<[Call]>([])
    let attends = LatestValue(true)

    init() {
        (events, tell) = AsyncStream.makeStream(of: CentralEvent.self)
    }

    func wait(for call: Call, times: Int = 1) async {
        for await calls in calls.watch() where calls.filter({ $0 == call }).count >= times { return }
    }

    /// Sends a notification of every subscribed characteristic.
    func notify(_ octets: [UInt8]) {
        let sinks = state.withLock { $0.sinks.map { ($0.key, $0.value.0) } }
        delivery.withLock { _ in
            for (token, sink) in sinks {
                sink.receive(octets.span, for: token, at: Timestamp(microseconds: 1_000_000))
                sink.flush()
            }
        }
    }

    func watch(_ advertisements: AdvertisementWatch) async {
        state.withLock { $0.watch = advertisements }
        calls.update { $0.append(.watch) }
    }

    /// Delivers an advertisement if the daemon listens for it.
    func advertise(_ advertisement: HeardAdvertisement) {
        guard let watch = state.withLock({ $0.watch }) else { return }
        let address = advertisement.peripheral.address
        guard watch.addresses.contains(address) || watch.includesResolvable && address.isResolvable else { return }
        watch.sink.receive(advertisement, at: Timestamp(microseconds: 1_000_000))
        watch.sink.flush()
    }

    private func record(_ call: Call) { calls.update { $0.append(call) } }

    func run() async {}

    func startDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {
        record(.startDiscovery)
    }

    func stopDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) { record(.stopDiscovery) }

    func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) {
        record(.connect)
        let fails = state.withLock { state in
            defer { state.failConnects = max(0, state.failConnects - 1) }
            return state.failConnects > 0
        }
        if fails { throw BluetoothError(.connectionFailed, "le-connection-abort-by-local") }
        if let error = state.withLock({ $0.connectErrors.popLast() }) { throw error }
        let hangs = state.withLock { state in
            defer { state.hangingConnects = max(0, state.hangingConnects - 1) }
            return state.hangingConnects > 0
        }
        guard hangs else { return }
        try? await Task.sleep(for: .seconds(600))
        record(.connectCancelled)
        throw BluetoothError(.cancelled, "cancelled")
    }

    func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError) {
        let hangs = state.withLock { state in
            defer { state.hangingDisconnects = max(0, state.hangingDisconnects - 1) }
            return state.hangingDisconnects > 0
        }
        guard hangs else { return record(.disconnect) }
        try? await Task.sleep(for: .seconds(600))
        throw BluetoothError(.cancelled, "cancelled")
    }

    func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        state.withLock { $0.tables[peripheral.address] ?? [] }
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        record(.read)
        let (error, hangs) = state.withLock { state in
            defer { state.hangingReads = max(0, state.hangingReads - 1) }
            return (state.readErrors.isEmpty ? nil : state.readErrors.removeFirst(), state.hangingReads > 0)
        }
        if let error { throw error }
        if hangs {
            try? await Task.sleep(for: .seconds(600))
            throw BluetoothError(.cancelled, "cancelled")
        }
        return state.withLock { $0.readValue }
    }

    func services(
        of peripheral: PeripheralID,
        timeout: Duration
    ) async throws(BluetoothError) -> [RemoteService] {
        let (table, descriptors) = state.withLock { ($0.tables[peripheral.address] ?? [], $0.descriptors.map(\.0)) }
        return Set(table.map(\.service)).map { uuid in
            var service = RemoteService(peripheral: peripheral, uuid: uuid, handle: "\(uuid)", isPrimary: true)
            service.characteristics = table.filter { $0.service == uuid }
            service.descriptors = descriptors.filter { $0.characteristic.service == uuid }
            return service
        }
    }

    func read(_ descriptor: RemoteDescriptor) async throws(BluetoothError) -> [UInt8] {
        record(.readDescriptor(descriptor.uuid))
        guard let octets = state.withLock({ state in state.descriptors.first { $0.0 == descriptor }?.1 }) else {
            throw BluetoothError(.notPermitted, "read not permitted")
        }
        return octets
    }

    func answerPairing(with delegate: any PairingDelegate) async {
        state.withLock { $0.pairingDelegate = delegate }
    }

    func pair(
        _ peripheral: PeripheralID,
        by method: PairingMethod,
        timeout: Duration
    ) async throws(BluetoothError) {
        record(.pair(method))
        if let error = state.withLock({ $0.pairingError }) { throw error }
    }

    func bonds() async throws(BluetoothError) -> [Bond] {
        state.withLock { $0.bonds }
    }

    func write(
        _ octets: [UInt8],
        to characteristic: RemoteCharacteristic,
        withResponse: Bool
    ) async throws(BluetoothError) {
        record(.write(octets))
        let error = state.withLock { $0.writeErrors.isEmpty ? nil : $0.writeErrors.removeFirst() }
        if let error { throw error }
        if state.withLock({ $0.refusedWrite == octets }) { throw BluetoothError(.busy, "in progress") }
        if let answer = state.withLock({ $0.answers[octets] }) { notify(answer) }
    }

    func subscribe(
        to characteristic: RemoteCharacteristic,
        by path: NotificationPath,
        token: SubscriptionToken,
        sink: any NotificationSink
    ) async throws(BluetoothError) {
        let refusal = state.withLock { state in
            state.paths.append(path)
            return state.refusedSubscription
        }
        if let refusal { throw refusal }
        let isKept = state.withLock { state in
            guard let (_, known) = state.sinks[token], known == characteristic else { return false }
            state.sinks[token] = (sink, characteristic)
            return true
        }
        if isKept { return }
        let ends = state.withLock { state in
            state.sinks[token] = (sink, characteristic)
            defer { state.endingSubscriptions = max(0, state.endingSubscriptions - 1) }
            return state.endingSubscriptions > 0
        }
        record(.subscribe)
        if let octets = state.withLock({ $0.notifiedAtOnce }) {
            sink.receive(octets.span, for: token, at: Timestamp(microseconds: 1_000_000))
            sink.flush()
        }
        guard ends else { return }
        state.withLock { $0.sinks[token] = nil }
        tell.yield(.subscriptionEnded(token, characteristic.peripheral))
    }

    func unsubscribe(_ token: SubscriptionToken) async throws(BluetoothError) {
        state.withLock { $0.sinks[token] = nil }
        record(.unsubscribe)
    }

    func setPowered(_ isPowered: Bool, adapter: BluetoothAddress) async throws(BluetoothError) {
        record(.setPowered(isPowered))
        let hangs = state.withLock { state in
            defer { state.hangingPowerChanges = max(0, state.hangingPowerChanges - 1) }
            return state.hangingPowerChanges > 0
        }
        guard hangs else { return }
        try? await Task.sleep(for: .seconds(600))
        throw BluetoothError(.cancelled, "cancelled")
    }

    func reconnectToBus() async { record(.reconnectToBus) }

    /// Hangs while ``attends`` is false.
    func catchUp(within limit: Duration) async {
        record(.catchUp)
        for octets in state.withLock({ $0.waiting }) { notify(octets) }
    }

    func roundTrip() async {
        record(.roundTrip)
        for await attends in attends.watch() where attends { return }
    }

    func isResponsive() async -> Bool { state.withLock(\.isResponsive) }

    func forget(_ peripheral: PeripheralID) async throws(BluetoothError) {
        state.withLock { $0.bonds.removeAll { $0.peripheral == peripheral } }
        record(.forget)
    }

    func close() async { tell.finish() }
}
