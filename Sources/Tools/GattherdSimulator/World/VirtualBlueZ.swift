import GattherdDBus
import GattherdGATT

/// A bluetoothd with its adapters, and the peripherals around it: events in, effects out, time passed in.
///
/// It does what BlueZ 5.66 was seen to do. Times are counted from its start.
struct VirtualBlueZ: Sendable {
    enum Event: Hashable, Sendable {
        case call(MethodCall)
        /// A client's connection to the bus ended.
        case clientLeft(String)
        /// The other end of an acquired socket was closed.
        case socketClosed(SocketID)
        /// A packet came from the other end.
        case packet([UInt8], SocketID)
        /// An agent answered the question of that number.
        case agentAnswered(UInt64, AgentAnswer)
        case control(ControlCommand)
    }

    /// What is to be done at a time; what became stale meanwhile shows by its epoch.
    enum Timer: Hashable, Sendable {
        case advertise(DeviceKey, scanEpoch: Int, airEpoch: Int)
        case expire(DeviceKey)
        case linkUp(DeviceKey, attempt: UInt64)
        case giveUp(DeviceKey, attempt: UInt64)
        case resolve(DeviceKey, linkEpoch: UInt64)
        case linkDown(DeviceKey, linkEpoch: UInt64, TruthEvent.DisconnectReason)
        case loseContact(DeviceKey, linkEpoch: UInt64)
        case rediscover(DeviceKey, linkEpoch: UInt64)
        case finish(UInt64)
        case timeOut(UInt64)
        case notify(peripheral: Int, characteristic: Int, rateEpoch: Int)
        case finishPairing(DeviceKey, pairing: UInt64)
        case failPairing(DeviceKey, pairing: UInt64)
        case abandonPairing(DeviceKey, pairing: UInt64)
        case handOn(DeviceKey, through: UInt64)
        case failDiscovery(MethodCall)
        /// A device goes that is connected, or that could not be.
        case remove(DeviceKey, linkEpoch: UInt64)
        /// The kernel ends a link that nobody uses.
        case abandon(peripheral: Int)
        /// bluetoothd connects once more by itself.
        case connectAgain(DeviceKey)
        case startDaemon
        case serve
    }

    let timing: Timing
    var adapters: [SimulatedAdapter]
    var peripherals: [SimulatedPeripheral]
    var devices: [DeviceKey: SimulatedDevice] = [:]
    /// What is on the bus, by path.
    var nodes: [String: Node] = [:]
    var operations: [UInt64: Operation] = [:]
    var agents = AgentList()
    /// When the client left the bus that still has a notification socket.
    var orphans: [SocketID: Duration] = [:]
    var isRunning = true
    /// True while bluetoothd has its name and answers nothing yet.
    var isStarting = false
    /// What was called while it started.
    var early: [MethodCall] = []
    var timers = TimerHeap<Timer>()
    private(set) var now = Duration.zero
    var effects: [Effect] = []
    private var lastID: UInt64 = 0

    init(_ scenario: Scenario) {
        timing = scenario.timing
        adapters = scenario.adapters.map(SimulatedAdapter.init)
        peripherals = scenario.peripherals.map(SimulatedPeripheral.init)
        exportAll()
        effects.removeAll()
    }

    /// When ``advance(to:)`` has something to do.
    var nextDeadline: Duration? { timers.next }

    /// Applies one event and says what must be done, in order.
    mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        runTimers(until: now)
        switch event {
        case .call(let call): answer(call)
        case .clientLeft(let client): forget(client)
        case .socketClosed(let socket): socketClosed(socket)
        case .packet(let octets, let socket): take(octets, from: socket)
        case .agentAnswered(let question, let answer): take(answer, to: question)
        case .control(let command): perform(command)
        }
        return takeEffects()
    }

    /// Lets time pass.
    mutating func advance(to now: Duration) -> [Effect] {
        runTimers(until: now)
        return takeEffects()
    }

    private mutating func runTimers(until end: Duration) {
        while let (timer, due) = timers.takeDue(end) {
            now = max(now, due)
            run(timer, due: due, end: end)
        }
        now = max(now, end)
    }

    private mutating func run(_ timer: Timer, due: Duration, end: Duration) {
        switch timer {
        case .advertise(let key, let scanEpoch, let airEpoch): advertise(key, scanEpoch, airEpoch)
        case .expire(let key): expire(key)
        case .linkUp(let key, let attempt): linkUp(key, attempt: attempt)
        case .giveUp(let key, let attempt): giveUp(key, attempt: attempt)
        case .resolve(let key, let epoch): if isCurrent(key, epoch) { resolve(key) }
        case .linkDown(let key, let epoch, let reason): if isCurrent(key, epoch) { linkDown(key, reason) }
        case .loseContact(let key, let epoch): if isCurrent(key, epoch) { loseContact(key) }
        case .rediscover(let key, let epoch): if isCurrent(key, epoch) { rediscover(key) }
        case .finish(let id): finish(id)
        case .timeOut(let id): timeOut(id)
        case .notify(let peripheral, let characteristic, let epoch):
            produce(peripheral, characteristic, epoch: epoch, lag: end - due)
        case .finishPairing(let key, let id): finishPairing(key, pairing: id)
        case .failPairing(let key, let id): failPairing(key, pairing: id)
        case .abandonPairing(let key, let id): abandonPairing(key, pairing: id)
        case .handOn(let key, let last): handOn(key, through: last)
        case .failDiscovery(let call): fail(call, .inProgress)
        case .remove(let key, let epoch): removeFailed(key, linkEpoch: epoch)
        case .abandon(let index): abandon(index)
        case .connectAgain(let key): connectAgain(key)
        case .startDaemon: startDaemon()
        case .serve: serve()
        }
    }

    private func isCurrent(_ key: DeviceKey, _ epoch: UInt64) -> Bool {
        devices[key].map { $0.isConnected && $0.linkEpoch == epoch } ?? false
    }

    private mutating func takeEffects() -> [Effect] {
        defer { effects.removeAll() }
        return effects
    }

    mutating func schedule(_ timer: Timer, after delay: Duration) {
        timers.insert(timer, at: now + delay)
    }

    /// A number that was not used before.
    mutating func makeID() -> UInt64 {
        lastID += 1
        return lastID
    }

    mutating func reply(_ call: MethodCall, _ value: DBusValue? = nil) {
        effects.append(.reply(call.token, value))
    }

    mutating func fail(_ call: MethodCall, _ error: DBusError) {
        effects.append(.fail(call.token, error))
    }

    mutating func changed(_ path: String, _ interface: String, _ properties: Property...) {
        effects.append(.changed(path: path, interface: interface, properties, invalidated: []))
    }
}
