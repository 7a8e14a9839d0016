/// A timed action.
///
/// Epochs and numbers identify actions that have become stale.
enum SimulationTimer: Hashable, Sendable {
    case advertise(DeviceKey, scanEpoch: Int, airEpoch: Int)
    case expire(DeviceKey)
    case linkUp(DeviceKey, attempt: UInt64)
    case giveUp(DeviceKey, attempt: UInt64)
    case resolve(DeviceKey, linkEpoch: UInt64)
    case linkDown(DeviceKey, linkEpoch: UInt64, TruthEvent.DisconnectReason)
    case loseContact(DeviceKey, absence: UInt64)
    /// Checks which adapters a moving peripheral reaches.
    case checkRange(peripheral: Int)
    case rediscover(DeviceKey, linkEpoch: UInt64)
    case finish(UInt64)
    case timeOut(UInt64)
    case notify(peripheral: Int, characteristic: Int, rateEpoch: Int)
    case sendRecords(peripheral: Int, epoch: UInt64)
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

/// The time of the simulation, its timers and its numbers, shared by all gateways.
///
/// Time advances only by events. It is relative to the start.
final class SimulationTime {
    /// A timer and the number of its gateway.
    struct Entry: Hashable, Sendable {
        let gateway: Int
        let timer: SimulationTimer
    }

    private(set) var now = Duration.zero
    private var timers = TimerHeap<Entry>()
    private var lastID: UInt64 = 0

    /// The time of the first timer.
    var nextDeadline: Duration? { timers.next }

    func insert(_ entry: Entry, at due: Duration) {
        timers.insert(entry, at: due)
    }

    /// Removes and returns the next timer that is due at `end`, and advances to its time.
    func advanceToTimer(until end: Duration) -> (entry: Entry, due: Duration)? {
        guard let (entry, due) = timers.removeDue(end) else { return nil }
        now = max(now, due)
        return (entry, due)
    }

    func advance(to end: Duration) {
        now = max(now, end)
    }

    /// Returns a new number.
    func makeID() -> UInt64 {
        lastID += 1
        return lastID
    }
}

/// The shared clock as one gateway uses it: with timers of its own.
struct SimulationClock {
    private let time: SimulationTime
    private let gateway: Int

    init(_ time: SimulationTime, gateway: Int) {
        self.time = time
        self.gateway = gateway
    }

    var now: Duration { time.now }

    func schedule(_ timer: SimulationTimer, after delay: Duration) {
        schedule(timer, at: time.now + delay)
    }

    func schedule(_ timer: SimulationTimer, at due: Duration) {
        time.insert(SimulationTime.Entry(gateway: gateway, timer: timer), at: due)
    }

    /// Returns a new number.
    func makeID() -> UInt64 { time.makeID() }
}
