public import GattherdModel

/// A detector that distinguishes a dead link from a quiet one.
///
/// Each stream has a limit, learned from its own rhythm or configured. When the limit is exceeded, the link is probed
/// with a request that the peripheral must answer. A link that answers is kept, and is probed at growing intervals
/// while it stays quiet. Two kinds of link are replaced: one that does not answer, and one that exceeds a configured
/// limit. A configured limit grows with each link replaced for it, so that a quiet device is not reconnected in a
/// loop.
public struct SilenceWatch: Equatable, Sendable {
    public struct Policy: Hashable, Sendable {
        /// The limit of a stream before it shows a rhythm.
        public var initial = Duration.seconds(60)
        /// The bounds of a learned limit.
        public var bounds = Duration.seconds(20) ... .seconds(600)
        /// The learned limit, as a multiple of the stream's longest usual pause.
        public var pauseFactor = 4
        /// The longest pause between two probes of a link that answers.
        public var longestPause = Duration.seconds(300)
        /// The upper bound to which a configured limit grows.
        public var longestStated = Duration.seconds(3600)
        /// The pause before bluetoothd is asked again after a missing answer.
        public var retry = Duration.seconds(10)
        /// The minimum time between two reconnects for a subscription that the peripheral has lost.
        public var forgetful = Duration.seconds(600)
        /// The shortest pause between two probes for an advertisement of a connected device.
        public var doubt = Duration.seconds(30)
        /// The time after which an advertisement counts: BlueZ reports earlier ones with a delay.
        public var lateAdvertisements = Duration.seconds(5)
        /// A link that carried data within this time is not probed for an advertisement.
        public var freshness = Duration.seconds(2)

        public init() {}
    }

    /// The reconnects caused by one stream's silence; kept across links.
    public struct Memory: Hashable, Sendable {
        /// Consecutive links without a value.
        var recycles = 0
        var lastRecycle: Duration?

        public init() {}
    }

    /// The answer to ``Step/probe(stream:)``.
    public enum Outcome: Hashable, Sendable {
        /// The peripheral answered; `isSubscribed` is false if its CCCD shows no subscription to the stream.
        case answered(isSubscribed: Bool)
        case unanswered
        /// Not even bluetoothd answered.
        case serviceUnanswered
    }

    public enum Step: Hashable, Sendable {
        /// Sends the peripheral a request; ``probed(_:stream:since:at:)`` follows.
        case probe(stream: Int)
        /// Replaces the link.
        case recycle(stream: Int, silence: Duration, Cause)
        /// The link's health is unknown, because bluetoothd does not answer.
        case stall(stream: Int, silence: Duration)
        /// bluetoothd answers again, or values arrived.
        case resume
    }

    /// The reason for replacing a link.
    public enum Cause: Hashable, Sendable {
        case noAnswer
        /// The peripheral answers, but does not know the subscription.
        case forgottenSubscription
        /// The peripheral answers, but exceeds a configured limit.
        case limit
    }

    private struct Stream: Equatable {
        let limit: SilenceLimit
        /// The number of values at the last count.
        var count: UInt64 = 0
        var heard: Duration
        /// Values received on this link.
        var values: UInt64 = 0
        /// The longest usual pause; decays slowly.
        var pause = Duration.zero
        /// Probes answered since the last value.
        var checks = 0
        var due = Duration.zero
        var memory: Memory
    }

    private let policy: Policy
    private var streams: [Stream]
    /// The time of the last sign of life of the peripheral.
    private var alive: Duration
    /// The time at which a probe last found bluetoothd unresponsive; `nil` while it answers.
    private var stalledAt: Duration?
    private var isStalled: Bool { stalledAt != nil }
    private var doubts = 0
    private var doubtDue: Duration
    private var isDoubted = false

    /// Creates a watch for one link.
    ///
    /// - Parameters:
    ///   - limits: The limit of each stream, and its memory from earlier links.
    ///   - policy: The durations and factors.
    ///   - now: The monotonic time.
    public init(_ limits: [(SilenceLimit, Memory)], policy: Policy = Policy(), at now: Duration) {
        self.policy = policy
        alive = now
        doubtDue = now + policy.lateAdvertisements
        streams = limits.map { Stream(limit: $0, heard: now, memory: $1) }
        for index in streams.indices { streams[index].due = now + (limit(of: index) ?? .zero) }
    }

    /// The memory of each stream, for the next link.
    public var memories: [Memory] { streams.map(\.memory) }

    /// Returns the time since the stream's last value.
    public func silence(of stream: Int, at now: Duration) -> Duration {
        streams.indices.contains(stream) ? now - streams[stream].heard : now - alive
    }

    // MARK: - What happened

    /// Records the number of values that each stream has received so far.
    public mutating func count(_ counts: [UInt64], at now: Duration) {
        for (index, count) in zip(streams.indices, counts) where count != streams[index].count {
            heard(index, count &- streams[index].count, at: now)
            streams[index].count = count
        }
    }

    private mutating func heard(_ index: Int, _ values: UInt64, at now: Duration) {
        let pause = (now - streams[index].heard) * (values > 1 ? 2 : 1) / Int(clamping: values)
        let usual = values < 8 ? streams[index].pause * 31 / 32 : streams[index].pause / 2
        streams[index].pause = streams[index].values == 0 ? .zero : max(pause, usual)
        streams[index].values &+= values
        streams[index].heard = now
        streams[index].checks = 0
        streams[index].memory.recycles = 0
        streams[index].due = now + (limit(of: index) ?? .zero)
        (alive, doubts, isDoubted) = (now, 0, false)
    }

    /// Records an advertisement of the peripheral although it counts as connected.
    public mutating func doubt(at now: Duration) {
        guard now >= doubtDue, now - alive >= policy.freshness else { return }
        isDoubted = true
        doubts += 1
        doubtDue = now + Backoff(minimum: policy.doubt, maximum: policy.longestPause).ceiling(after: doubts)
    }

    // MARK: - What to do

    /// Returns the step that is due, if any.
    public mutating func next(at now: Duration) -> Step? {
        if let stalledAt, alive > stalledAt { return resume() }
        if isDoubted {
            isDoubted = false
            return .probe(stream: 0)
        }
        while let index = streams.indices.first(where: { isDue($0, at: now) }) {
            let stream = streams[index]
            if stream.limit.isStated, stream.checks > 0 { return recycle(index, .limit, at: now) }
            guard !stream.limit.isStated, now - alive < policy.bounds.lowerBound / 2 else {
                return .probe(stream: index)
            }
            // Another stream has values, so the link is alive.
            postpone(index, at: now)
        }
        return nil
    }

    /// Records the outcome of a probe that began at `start`, and returns the next step.
    public mutating func probed(_ outcome: Outcome, stream: Int, since start: Duration, at now: Duration) -> Step? {
        switch outcome {
        case .answered(let isSubscribed):
            alive = now
            if !isSubscribed, mayResubscribe(stream, at: now) {
                return recycle(stream, .forgottenSubscription, at: now)
            }
            for index in streams.indices
            where index == stream || isDue(index, at: now) && !streams[index].limit.isStated {
                postpone(index, at: now)
            }
            return isStalled ? resume() : nil
        case .unanswered where alive > start:
            postpone(stream, at: now)
            return nil
        case .unanswered: return recycle(stream, .noAnswer, at: now)
        case .serviceUnanswered:
            for index in streams.indices where isDue(index, at: now) || index == stream {
                streams[index].due = now + policy.retry
            }
            stalledAt = now
            return .stall(stream: stream, silence: silence(of: stream, at: now))
        }
    }

    /// The time of the next count and of the next call of ``next(at:)``.
    public func deadline(at now: Duration) -> Duration {
        let watched = streams.indices.compactMap { index in limit(of: index).map { (streams[index].due, $0) } }
        let times = watched.map { due, limit in min(due, CountTimes(limit: limit).next(after: now)) }
        return isDoubted ? now : times.min() ?? now + policy.longestPause
    }

    /// Returns true if no stream has new values and no step is due, so that a count would change nothing.
    public func isIdle(_ counts: [UInt64], at now: Duration) -> Bool {
        let isSilent = zip(streams, counts).allSatisfy { $0.count == $1 }
        return isSilent && !isDoubted && !streams.indices.contains { isDue($0, at: now) }
    }

    // MARK: - Limits

    /// The stream's current limit; `nil` if it has none.
    func limit(of index: Int) -> Duration? {
        let stream = streams[index]
        switch stream.limit {
        case .never: return nil
        case .stated(let limit):
            let most = max(limit, policy.longestStated)
            return Backoff(minimum: limit, maximum: most).ceiling(after: stream.memory.recycles)
        case .learned:
            guard stream.values > 2 else {
                let growing = Backoff(minimum: policy.initial, maximum: policy.longestStated)
                return growing.ceiling(after: stream.memory.recycles)
            }
            return min(max(stream.pause * policy.pauseFactor, policy.bounds.lowerBound), policy.bounds.upperBound)
        }
    }

    private func isDue(_ index: Int, at now: Duration) -> Bool {
        streams[index].limit != .never && now >= streams[index].due
    }

    /// Schedules the next probe of a silent stream whose link answers, after a growing pause.
    private mutating func postpone(_ index: Int, at now: Duration) {
        guard streams.indices.contains(index), let limit = limit(of: index) else { return }
        streams[index].checks += 1
        let growing = Backoff(minimum: limit, maximum: policy.longestPause).ceiling(after: streams[index].checks)
        streams[index].due = now + (streams[index].limit.isStated ? limit : growing)
    }

    private func mayResubscribe(_ index: Int, at now: Duration) -> Bool {
        guard streams.indices.contains(index), streams[index].limit != .never else { return false }
        return streams[index].memory.lastRecycle.map { now - $0 >= policy.forgetful } ?? true
    }

    private mutating func recycle(_ index: Int, _ cause: Cause, at now: Duration) -> Step {
        if streams.indices.contains(index) {
            streams[index].memory.recycles += 1
            if cause == .forgottenSubscription { streams[index].memory.lastRecycle = now }
        }
        return .recycle(stream: index, silence: silence(of: index, at: now), cause)
    }

    private mutating func resume() -> Step {
        stalledAt = nil
        return .resume
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

extension SilenceLimit {
    fileprivate var isStated: Bool { if case .stated = self { true } else { false } }
}
