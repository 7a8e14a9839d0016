/// An adapter of a supervisor, with its learned state.
struct SupervisedAdapter: Sendable {
    /// The pause before an adapter that could not be switched on is switched on again.
    private static let powerRetry = Duration.seconds(5)
    /// The limit for BlueZ to switch an adapter's power.
    private static let powerLimit = Duration.seconds(60)

    /// True while BlueZ has the adapter; an absent adapter keeps its learned state.
    private var isPresent = false
    /// True while the adapter is present and on.
    private(set) var isPowered = false
    private(set) var otherLinks = 0
    /// The time since which some device needs a sighting here; `nil` if none does.
    private(set) var lookingSince: Duration?
    /// The time at which the adapter is powered on (again), during a power cycle.
    private(set) var powerOnDue: Duration?
    private(set) var report: AdapterReport
    var slots = SlotBook()
    var rotation = Rotation()
    var discovery = DiscoveryMachine()
    /// The state of the advertisement monitor.
    var passiveScan = PassiveScan()
    var ladder: RecoveryLadder

    init(ladder: RecoveryLadder, report: AdapterReport) {
        (self.ladder, self.report) = (ladder, report)
    }

    /// True while the adapter is on, and no power cycle is under way.
    var isUsable: Bool { isPowered && powerOnDue == nil }

    // MARK: - Power

    mutating func setPower(_ isOn: Bool, at now: Duration) {
        let wasOn = isPowered
        (isPresent, isPowered) = (true, isOn)
        guard isOn, !wasOn else { return }
        powerOnDue = nil
        passiveScan.switchedOn(at: now)
    }

    /// Ends all activity, because the adapter is off or gone.
    mutating func stop(isGone: Bool) {
        isPowered = false
        discovery.reset()
        if isGone { (isPresent, otherLinks, powerOnDue) = (false, 0, nil) }
    }

    /// Ends all activity, because bluetoothd is gone; a power cycle continues if the adapter returns with it.
    mutating func serviceLost() {
        (isPresent, isPowered, otherLinks) = (false, false, 0)
        discovery.reset()
    }

    /// Records the answer to a request for power.
    mutating func powered(isOn: Bool, at now: Duration) {
        guard powerOnDue != nil else { return }
        powerOnDue = isOn ? nil : now + Self.powerRetry
    }

    /// The time of the next request to power the adapter on, if it is present.
    var powerOnDeadline: Duration? { isPresent ? powerOnDue : nil }

    /// Returns true if the adapter must be powered on now.
    mutating func startPowerOn(at now: Duration) -> Bool {
        guard let due = powerOnDeadline, due <= now else { return false }
        powerOnDue = now + Self.powerLimit
        return true
    }

    // MARK: - Discovery

    /// Records the answer to a discovery request; a new failure counts against the adapter.
    mutating func discoveryAnswered(_ ticket: Int, _ answer: DiscoveryMachine.Answer, at now: Duration) {
        let failures = discovery.failures
        discovery.answered(ticket, answer, at: now)
        if discovery.failures > failures { ladder.failed(at: now) }
    }

    mutating func setSightingNeeded(_ isNeeded: Bool, at now: Duration) {
        lookingSince = isNeeded ? lookingSince ?? now : nil
    }

    /// Records a remedy, and does the adapter's own part of it.
    mutating func apply(_ remedy: RecoveryLadder.Remedy, at now: Duration) {
        report.lastRemedy = remedy
        switch remedy.step {
        case .restartDiscovery: discovery.restart()
        case .newBusConnection: break
        case .powerCycle: powerOnDue = now + Self.powerLimit
        }
    }

    // MARK: - Links

    mutating func setOtherLinks(_ count: Int) { otherLinks = count }

    /// Updates the report and returns it, if it has changed.
    mutating func updateReport(links: Int, attempts: Int, waiting: [String]) -> AdapterReport? {
        let before = report
        (report.links, report.slots) = (links, slots.limit)
        (report.attempts, report.waiting) = (attempts, waiting)
        return report == before ? nil : report
    }
}
