/// The reliability of an adapter's advertisement monitor, which reports advertisements without active discovery.
///
/// An active monitor is no proof: after controller faults it may report nothing more. A monitor that has fallen
/// silent is replaced by active discovery until it restarts.
struct PassiveScan: Equatable, Sendable {
    /// Longer than the advertising pauses of most sensors.
    static let longestSilence = Duration.seconds(600)

    /// The time since which BlueZ reports the monitor as active; `nil` while it is not.
    private var since: Duration?
    private var fellSilent = false

    var isReliable: Bool { since != nil && !fellSilent }

    /// Records the monitor state that BlueZ reports.
    mutating func reported(isActive: Bool, now: Duration) {
        guard isActive != (since != nil) else { return }
        begin(isActive ? now : nil)
    }

    /// Records that the adapter was powered on, which restarts an active monitor.
    mutating func switchedOn(now: Duration) {
        begin(since.map { _ in now })
    }

    mutating func checkSilence(lastHeard: Duration?, now: Duration) {
        if let deadline = deadline(lastHeard: lastHeard), now >= deadline { fellSilent = true }
    }

    /// The time at which ``checkSilence(lastHeard:now:)`` has an effect without another event.
    func deadline(lastHeard: Duration?) -> Duration? {
        guard isReliable, let since else { return nil }
        return max(since, lastHeard ?? since) + Self.longestSilence
    }

    private mutating func begin(_ time: Duration?) {
        (since, fellSilent) = (time, false)
    }
}
