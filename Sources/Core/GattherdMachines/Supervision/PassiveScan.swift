/// Whether an adapter that tells of advertisements without a scan of ours can be relied on for them.
///
/// BlueZ's word that a monitor is active is no proof: after faults of a controller it may tell of nothing more. From when
/// it has long been silent until it begins anew, our own scan is wanted instead.
struct PassiveScan: Equatable, Sendable {
    /// Longer than sensors are silent between two advertisements, most of them.
    static let longestSilence = Duration.seconds(600)

    /// Since when BlueZ says that it runs; `nil` when it does not.
    private var since: Duration?
    private var fellSilent = false

    var isReliable: Bool { since != nil && !fellSilent }

    /// Takes BlueZ's word.
    mutating func reported(isActive: Bool, now: Duration) {
        guard isActive != (since != nil) else { return }
        begin(isActive ? now : nil)
    }

    /// The adapter was switched on: what runs has begun anew.
    mutating func switchedOn(now: Duration) {
        begin(since.map { _ in now })
    }

    mutating func settle(lastHeard: Duration?, now: Duration) {
        if let deadline = deadline(lastHeard: lastHeard), now >= deadline { fellSilent = true }
    }

    /// When ``settle(lastHeard:now:)`` has an effect without another event.
    func deadline(lastHeard: Duration?) -> Duration? {
        guard isReliable, let since else { return nil }
        return max(since, lastHeard ?? since) + Self.longestSilence
    }

    private mutating func begin(_ time: Duration?) {
        (since, fellSilent) = (time, false)
    }
}
