import GattherdModel

/// The silence of one stream on one link: the time of its last value, its limit, and the time of the next probe.
///
/// The limit is configured, or learned from the longest usual pause between values.
struct StreamSilence: Equatable, Sendable {
    private let setting: SilenceLimit
    private let policy: SilenceWatch.Policy
    /// The number of values at the last count.
    private var count: UInt64 = 0
    private var heard: Duration
    /// Values received on this link.
    private var values: UInt64 = 0
    /// The longest usual pause; decays slowly.
    private var pause = Duration.zero
    /// Probes answered since the last value.
    private var checks = 0
    /// The time of the next probe.
    private var due = Duration.zero
    private(set) var memory: SilenceWatch.Memory

    init(_ setting: SilenceLimit, _ memory: SilenceWatch.Memory, _ policy: SilenceWatch.Policy, at now: Duration) {
        (self.setting, self.memory, self.policy, heard) = (setting, memory, policy, now)
        due = now + (limit ?? .zero)
    }

    // MARK: - Values

    /// Records the number of values so far; returns true if there are new ones.
    mutating func setCount(_ new: UInt64, at now: Duration) -> Bool {
        guard new != count else { return false }
        receive(new &- count, at: now)
        count = new
        return true
    }

    private mutating func receive(_ new: UInt64, at now: Duration) {
        let last = silence(at: now) * (new > 1 ? 2 : 1) / Int(clamping: new)
        let usual = new < 8 ? pause * 31 / 32 : pause / 2
        pause = values == 0 ? .zero : max(last, usual)
        values &+= new
        (heard, checks, memory.recycles) = (now, 0, 0)
        due = now + (limit ?? .zero)
    }

    /// True if the stream has received no value beyond that number.
    func isCounted(_ number: UInt64) -> Bool { number == count }

    /// Returns the time since the last value.
    func silence(at now: Duration) -> Duration { now - heard }

    // MARK: - Limits

    /// True if the limit is configured.
    var hasStatedLimit: Bool { if case .stated = setting { true } else { false } }

    /// True if the link was kept once although the stream exceeded its configured limit.
    var wasKeptPastStatedLimit: Bool { hasStatedLimit && checks > 0 }

    /// The current limit; `nil` if there is none.
    private var limit: Duration? {
        switch setting {
        case .never: return nil
        case .stated(let limit):
            let most = max(limit, policy.longestStated)
            return Backoff(minimum: limit, maximum: most).ceiling(after: memory.recycles)
        case .learned:
            guard values > 2 else {
                let growing = Backoff(minimum: policy.initial, maximum: policy.longestStated)
                return growing.ceiling(after: memory.recycles)
            }
            return min(max(pause * policy.pauseFactor, policy.bounds.lowerBound), policy.bounds.upperBound)
        }
    }

    // MARK: - Probes

    /// True if the limit is exceeded, and a probe is due.
    func isDue(at now: Duration) -> Bool { setting != .never && now >= due }

    /// Returns the time of the next count or probe; `nil` for a stream without a limit.
    func deadline(after now: Duration) -> Duration? {
        limit.map { min(due, CountTimes(limit: $0).next(after: now)) }
    }

    /// Schedules the next probe of a silent stream whose link answers, after a growing pause.
    mutating func postpone(at now: Duration) {
        guard let limit else { return }
        checks += 1
        let growing = Backoff(minimum: limit, maximum: policy.longestPause).ceiling(after: checks)
        due = now + (hasStatedLimit ? limit : growing)
    }

    /// Schedules the repetition of a probe that bluetoothd has not answered.
    mutating func repeatProbe(at now: Duration) { due = now + policy.retry }

    // MARK: - New links

    /// True if a subscription that the peripheral has lost may cause a new link now.
    func mayResubscribe(at now: Duration) -> Bool {
        guard setting != .never else { return false }
        return memory.lastRecycle.map { now - $0 >= policy.forgetful } ?? true
    }

    /// Records that the link is replaced because of this stream.
    mutating func recycle(_ cause: SilenceWatch.Cause, at now: Duration) {
        memory.recycles += 1
        if cause == .forgottenSubscription { memory.lastRecycle = now }
    }
}

/// The times at which the values of a stream are counted.
///
/// The times are multiples of an interval, and the multiples of a long interval are multiples of the short ones. So the
/// streams of all links are counted together, and a gateway with many silent links wakes up no more often than one
/// with a single link.
private struct CountTimes {
    private static let longest: Int64 = 10_000_000_000
    /// The maximum number of times that the longest interval is halved.
    private static let halvings: Int64 = 10

    private let interval: Int64

    /// - Parameter limit: The stream's limit, which is about eight intervals.
    init(limit: Duration) {
        let most = (limit / 8).wholeNanoseconds
        let shorter = (0...Self.halvings).lazy.map { Self.longest >> $0 }
        interval = shorter.first { $0 <= most } ?? Self.longest >> Self.halvings
    }

    func next(after now: Duration) -> Duration {
        let elapsed = now.wholeNanoseconds
        return .nanoseconds(elapsed - elapsed % interval) + .nanoseconds(interval)
    }
}

extension Duration {
    fileprivate var wholeNanoseconds: Int64 {
        components.seconds &* 1_000_000_000 &+ components.attoseconds / 1_000_000_000
    }
}
