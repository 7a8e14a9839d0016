import GattherdGATT
import GattherdModel

/// A device of a supervisor: its link, its sightings and its failures.
struct SupervisedLink: Sendable {
    typealias Sighting = SupervisorMachine.Sighting

    /// A link that was up and did not answer.
    struct DeadLink: Equatable {
        let adapter: BluetoothAddress
        let since: Duration
    }

    /// An attempt to connect.
    struct Attempt: Equatable {
        let since: Duration
        /// True if BlueZ showed a link for a moment: the device was in range and the adapter had room.
        var hasSeenLink = false
    }

    struct Timer: Equatable {
        var due: Duration
        let ticket: Int
    }

    /// The time for which a newly seen device waits for sightings by other adapters.
    private static let comparison = Duration.seconds(1)

    private(set) var link: LinkMachine
    /// The only adapter that the device may use.
    let pinned: BluetoothAddress?
    /// The device's sightings, by adapter.
    private(set) var sightings: [BluetoothAddress: Sighting] = [:]
    /// The adapter of the attempt or link under way.
    private(set) var adapter: BluetoothAddress?
    /// Consecutive failed attempts, by adapter.
    private(set) var failures: [BluetoothAddress: Int] = [:]
    private(set) var lastHeard: Duration?
    /// The end of the time in which other adapters may see the device, before one is chosen.
    private(set) var comparedAt: Duration?
    private(set) var attempt: Attempt?
    /// The adapter that refused the last attempt at once, perhaps because it was full.
    private(set) var refusedBy: BluetoothAddress?
    private(set) var timer: Timer?
    /// The last link, if it proved dead, until the next one is ready.
    private(set) var deadLink: DeadLink?
    /// True after dismissal; the device is removed once its link has ended.
    private(set) var isLeaving = false

    init(link: LinkMachine, pinned: BluetoothAddress?) {
        self.link = link
        self.pinned = pinned
    }

    /// True unless a person, a removal or another gateway's lease keeps the device away.
    var mayConnect: Bool { link.state != .held && !isLeaving && link.withdrawal == nil }

    /// True after dismissal, when nothing of the link is left.
    var hasLeft: Bool { isLeaving && link.state == .held && !link.isBound }

    mutating func dismiss() { isLeaving = true }

    // MARK: - The link

    mutating func handle(
        _ event: LinkMachine.Event,
        at now: Duration,
        using random: inout SplitMix64
    ) -> [LinkMachine.Effect] {
        link.handle(event, at: now, using: &random)
    }

    /// Assigns the adapter of the next attempt or link.
    mutating func assign(_ address: BluetoothAddress) { adapter = address }

    /// Removes the adapter once nothing of the link is bound to it.
    mutating func releaseAdapter() { if !link.isBound { adapter = nil } }

    mutating func setTimer(due: Duration, ticket: Int) { timer = Timer(due: due, ticket: ticket) }

    /// Removes the timer and returns its ticket, if it is due.
    mutating func takeDueTimer(at now: Duration) -> Int? {
        guard let timer, timer.due <= now else { return nil }
        self.timer = nil
        return timer.ticket
    }

    /// Ends the pause under way.
    mutating func endPause(at now: Duration) { timer?.due = now }

    // MARK: - Sightings

    /// Records a sighting; `isFirst` if no usable adapter has seen the device.
    mutating func sighted(_ sighting: Sighting, on address: BluetoothAddress, isFirst: Bool, at now: Duration) {
        if isFirst { comparedAt = now + Self.comparison }
        sightings[address] = sighting
        if sighting.isConnected, adapter == address { attempt?.hasSeenLink = true }
        if sighting.isHeard { lastHeard = now }
    }

    mutating func forget(_ address: BluetoothAddress) { sightings[address] = nil }

    mutating func disconnected(on address: BluetoothAddress) { sightings[address]?.isConnected = false }

    mutating func adapterStopped(_ address: BluetoothAddress, isGone: Bool) {
        if isGone { forget(address) }
        failures[address] = nil
    }

    mutating func serviceLost() { (sightings, failures) = ([:], [:]) }

    // MARK: - Attempts

    mutating func startAttempt(at now: Duration) { (attempt, refusedBy) = (Attempt(since: now), nil) }

    mutating func countFailure(on address: BluetoothAddress) { failures[address, default: 0] += 1 }

    mutating func refused(by address: BluetoothAddress) { refusedBy = address }

    /// Records a silent link.
    mutating func proveDead(on address: BluetoothAddress, at now: Duration) {
        deadLink = DeadLink(adapter: address, since: now)
    }

    mutating func becameReady(on address: BluetoothAddress) { (failures[address], deadLink) = (nil, nil) }
}

extension LinkMachine {
    /// True while an attempt, a link or its end is bound to one adapter.
    var isBound: Bool { isUp || ending != nil || state == .disconnecting }

    /// True while only time keeps the link from requesting a turn.
    var isPausing: Bool { state == .backingOff && ending == nil && !isQueued }
}
