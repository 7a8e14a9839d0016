import GattherdDBus
import GattherdGATT

/// A simulated bluetoothd with its adapters and the peripherals in range: a pure state machine.
///
/// Takes events with their time and returns effects. Never reads a clock. Behaves like BlueZ 5.66 as observed. Times
/// are relative to the start.
struct VirtualBlueZ: Sendable {
    enum Event: Hashable, Sendable {
        case call(MethodCall)
        /// A client's bus connection ended.
        case clientLeft(String)
        /// A client closed its end of an acquired socket.
        case socketClosed(SocketID)
        /// A client wrote a packet to an acquired socket.
        case packet([UInt8], SocketID)
        /// An agent answered the request with this number.
        case agentAnswered(UInt64, AgentAnswer)
        case control(ControlCommand)
    }

    /// A timed action.
    ///
    /// Epochs and numbers identify actions that have become stale.
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
        case deliver(DeviceKey, through: UInt64)
        case failDiscovery(MethodCall)
        /// Removes a device after a failed pairing or attempt.
        case remove(DeviceKey, linkEpoch: UInt64)
        /// The kernel ends a link that outlived bluetoothd.
        case abandon(peripheral: Int)
        /// bluetoothd retries a connection on its own.
        case connectAgain(DeviceKey)
        case startDaemon
        case serve
    }

    /// The time from an unanswered request to the end of the link.
    static let unansweredDisconnectDelay = Duration.seconds(2)

    let timing: Timing
    var adapters: [SimulatedAdapter]
    var peripherals: [SimulatedPeripheral]
    var devices: [DeviceKey: SimulatedDevice] = [:]
    var objects = ExportedObjects()
    var requests = RequestTable()
    var agents = AgentList()
    var orphans = OrphanedSockets()
    var daemon = DaemonState()
    var effects = EffectQueue()
    private(set) var now = Duration.zero
    private var timers = TimerHeap<Timer>()
    private var lastID: UInt64 = 0

    init(_ scenario: Scenario) {
        timing = scenario.timing
        adapters = scenario.adapters.map(SimulatedAdapter.init)
        peripherals = scenario.peripherals.map(SimulatedPeripheral.init)
        exportAll()
        _ = effects.dequeueAll()
    }

    /// The time of the next call of ``advance(to:)``.
    var nextDeadline: Duration? { timers.next }

    /// Applies one event and returns its effects in order.
    mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        runTimers(until: now)
        switch event {
        case .call(let call): answer(call)
        case .clientLeft(let client): removeClient(client)
        case .socketClosed(let socket): socketClosed(socket)
        case .packet(let packet, let socket): receive(packet, from: socket)
        case .agentAnswered(let request, let answer): receive(answer, to: request)
        case .control(let command): perform(command)
        }
        return effects.dequeueAll()
    }

    /// Runs the timers that are due and returns their effects.
    mutating func advance(to now: Duration) -> [Effect] {
        runTimers(until: now)
        return effects.dequeueAll()
    }

    private mutating func runTimers(until end: Duration) {
        while let (timer, due) = timers.removeDue(end) {
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
        case .deliver(let key, let last): deliverBuffered(key, through: last)
        case .failDiscovery(let call): fail(call, .inProgress)
        case .remove(let key, let epoch): removeFailed(key, linkEpoch: epoch)
        case .abandon(let index): abandonLink(index)
        case .connectAgain(let key): connectAgain(key)
        case .startDaemon: startDaemon()
        case .serve: serve()
        }
    }

    /// True if a device still has the link of this epoch.
    private func isCurrent(_ key: DeviceKey, _ epoch: UInt64) -> Bool {
        devices[key].map { $0.isConnected && $0.linkEpoch == epoch } ?? false
    }

    mutating func schedule(_ timer: Timer, after delay: Duration) {
        timers.insert(timer, at: now + delay)
    }

    mutating func schedule(_ timer: Timer, at due: Duration) {
        timers.insert(timer, at: due)
    }

    /// Returns a new number.
    mutating func makeID() -> UInt64 {
        lastID += 1
        return lastID
    }

    mutating func reply(_ call: MethodCall, _ value: DBusValue? = nil) {
        effects.reply(call.token, value)
    }

    mutating func fail(_ call: MethodCall, _ error: DBusError) {
        effects.fail(call.token, error)
    }
}
