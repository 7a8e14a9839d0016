public import GattherdModel

/// Finds out whether a link whose streams are silent is dead, or only has nothing to say.
///
/// Each stream has a limit, learned from its own rhythm or stated. When it is exceeded the link is probed with a
/// request that the peripheral must answer. A link that answers is left alone, and probed ever less often while it
/// stays quiet. Only a link that does not answer is replaced, and one whose stream must speak by a stated limit. A
/// stated limit grows with each link that it costs, so that a quiet device is not reconnected in a loop.
public struct SilenceWatch: Equatable, Sendable {
    public struct Policy: Hashable, Sendable {
        /// The limit of a stream that has not shown a rhythm yet.
        public var initial = Duration.seconds(60)
        /// The shortest and the longest limit that is learned.
        public var bounds = Duration.seconds(20) ... .seconds(600)
        /// How many times its longest usual pause a stream may be silent.
        public var patience = 4
        /// The longest pause between two probes of a link that answers.
        public var longestPause = Duration.seconds(300)
        /// The longest limit that a stated one grows to.
        public var longestStated = Duration.seconds(3600)
        /// The pause before bluetoothd is asked again, once it did not answer.
        public var retry = Duration.seconds(10)
        /// The shortest time between two links that end because a peripheral has forgotten a subscription.
        public var forgetful = Duration.seconds(600)
        /// The shortest pause between two probes for an advertisement of a connected device.
        public var doubt = Duration.seconds(30)
        /// The time after which an advertisement is news: those of before the link are told a little late.
        public var lateAdvertisements = Duration.seconds(5)
        /// A link that carried anything within this time is not probed for an advertisement.
        public var freshness = Duration.seconds(2)

        public init() {}
    }

    /// The links of one stream that ended for its silence; outlives them.
    public struct Memory: Hashable, Sendable {
        /// Links in a row without a value.
        var recycles = 0
        var lastRecycle: Duration?

        public init() {}
    }

    /// The answer to ``Step/probe(stream:)``.
    public enum Outcome: Hashable, Sendable {
        /// The peripheral has answered; `isSubscribed` is false when it says that nobody has subscribed to the stream.
        case answered(isSubscribed: Bool)
        case unanswered
        /// Not even bluetoothd has answered.
        case serviceUnanswered
    }

    public enum Step: Hashable, Sendable {
        /// Ask the peripheral for something; ``probed(_:stream:since:now:)`` follows.
        case probe(stream: Int)
        /// End the link and make a new one.
        case recycle(stream: Int, silence: Duration, Cause)
        /// Nothing can be said about the link, as bluetoothd does not answer.
        case stall(stream: Int, silence: Duration)
        /// bluetoothd answers again, or values came.
        case resume
    }

    /// Why a link is replaced.
    public enum Cause: Hashable, Sendable {
        case noAnswer
        /// The peripheral answers, but does not know of the subscription.
        case forgottenSubscription
        /// The peripheral answers, but a stated limit is exceeded.
        case limit
    }

    private struct Stream: Equatable {
        let limit: SilenceLimit
        /// Values so far, as last told.
        var count: UInt64 = 0
        var heard: Duration
        /// Values of this link.
        var values: UInt64 = 0
        /// The longest usual pause; sinks slowly.
        var pause = Duration.zero
        /// Probes that were answered since the last value.
        var checks = 0
        var due = Duration.zero
        var memory: Memory
    }

    /// The pauses in which counts are taken.
    private static let looks = Duration.milliseconds(10) ... .seconds(10)

    private let policy: Policy
    private var streams: [Stream]
    /// When the peripheral was last known to be there.
    private var alive: Duration
    /// When a probe last found that bluetoothd does not answer; `nil` while it does.
    private var stalledAt: Duration?
    private var isStalled: Bool { stalledAt != nil }
    private var doubts = 0
    private var doubtDue: Duration
    private var isDoubted = false

    /// - Parameters:
    ///   - limits: The limit of each stream, and what is remembered of it.
    ///   - policy: How patient to be.
    ///   - now: The monotonic time.
    public init(_ limits: [(SilenceLimit, Memory)], policy: Policy = Policy(), now: Duration) {
        self.policy = policy
        alive = now
        doubtDue = now + policy.lateAdvertisements
        streams = limits.map { Stream(limit: $0, heard: now, memory: $1) }
        for index in streams.indices { streams[index].due = now + (limit(of: index) ?? .zero) }
    }

    /// What is to be remembered of each stream for the next link.
    public var memories: [Memory] { streams.map(\.memory) }

    /// How long the stream has been silent.
    public func silence(of stream: Int, now: Duration) -> Duration {
        streams.indices.contains(stream) ? now - streams[stream].heard : now - alive
    }

    // MARK: - What happened

    /// Takes how many values each stream has had so far.
    public mutating func count(_ counts: [UInt64], now: Duration) {
        for (index, count) in zip(streams.indices, counts) where count != streams[index].count {
            heard(index, count &- streams[index].count, now: now)
            streams[index].count = count
        }
    }

    private mutating func heard(_ index: Int, _ values: UInt64, now: Duration) {
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

    /// The peripheral was heard advertising although it counts as connected.
    public mutating func doubt(now: Duration) {
        guard now >= doubtDue, now - alive >= policy.freshness else { return }
        isDoubted = true
        doubts += 1
        doubtDue = now + Backoff(minimum: policy.doubt, maximum: policy.longestPause).ceiling(after: doubts)
    }

    // MARK: - What to do

    /// The step that is due, if one is.
    public mutating func next(now: Duration) -> Step? {
        if let stalledAt, alive > stalledAt { return resume() }
        if isDoubted {
            isDoubted = false
            return .probe(stream: 0)
        }
        while let index = streams.indices.first(where: { isDue($0, now: now) }) {
            let stream = streams[index]
            if stream.limit.isStated, stream.checks > 0 { return recycle(index, .limit, now: now) }
            guard !stream.limit.isStated, now - alive < policy.bounds.lowerBound / 2 else {
                return .probe(stream: index)
            }
            // Another stream speaks: the link is alive.
            postpone(index, now: now)
        }
        return nil
    }

    /// Takes the answer to a probe that was begun at `start`, and says what follows.
    public mutating func probed(_ outcome: Outcome, stream: Int, since start: Duration, now: Duration) -> Step? {
        switch outcome {
        case .answered(let isSubscribed):
            alive = now
            if !isSubscribed, mayResubscribe(stream, now: now) {
                return recycle(stream, .forgottenSubscription, now: now)
            }
            for index in streams.indices
            where index == stream || isDue(index, now: now) && !streams[index].limit.isStated {
                postpone(index, now: now)
            }
            return isStalled ? resume() : nil
        case .unanswered where alive > start:
            postpone(stream, now: now)
            return nil
        case .unanswered: return recycle(stream, .noAnswer, now: now)
        case .serviceUnanswered:
            for index in streams.indices where isDue(index, now: now) || index == stream {
                streams[index].due = now + policy.retry
            }
            stalledAt = now
            return .stall(stream: stream, silence: silence(of: stream, now: now))
        }
    }

    /// When to take the next counts, and to ask for the next step.
    public func deadline(now: Duration) -> Duration {
        let watched = streams.indices.compactMap { index in limit(of: index).map { (streams[index].due, $0) } }
        let times = watched.map { due, limit in
            min(due, now + min(max(limit / 8, Self.looks.lowerBound), Self.looks.upperBound))
        }
        return isDoubted ? now : times.min() ?? now + policy.longestPause
    }

    // MARK: - Limits

    /// The stream's limit as it is now; `nil` when it has none.
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
            return min(max(stream.pause * policy.patience, policy.bounds.lowerBound), policy.bounds.upperBound)
        }
    }

    private func isDue(_ index: Int, now: Duration) -> Bool {
        streams[index].limit != .never && now >= streams[index].due
    }

    /// The link answers although the stream is silent: it is asked again later, and ever later.
    private mutating func postpone(_ index: Int, now: Duration) {
        guard streams.indices.contains(index), let limit = limit(of: index) else { return }
        streams[index].checks += 1
        let growing = Backoff(minimum: limit, maximum: policy.longestPause).ceiling(after: streams[index].checks)
        streams[index].due = now + (streams[index].limit.isStated ? limit : growing)
    }

    private func mayResubscribe(_ index: Int, now: Duration) -> Bool {
        guard streams.indices.contains(index), streams[index].limit != .never else { return false }
        return streams[index].memory.lastRecycle.map { now - $0 >= policy.forgetful } ?? true
    }

    private mutating func recycle(_ index: Int, _ cause: Cause, now: Duration) -> Step {
        if streams.indices.contains(index) {
            streams[index].memory.recycles += 1
            if cause == .forgottenSubscription { streams[index].memory.lastRecycle = now }
        }
        return .recycle(stream: index, silence: silence(of: index, now: now), cause)
    }

    private mutating func resume() -> Step {
        stalledAt = nil
        return .resume
    }
}

extension SilenceLimit {
    fileprivate var isStated: Bool { if case .stated = self { true } else { false } }
}
