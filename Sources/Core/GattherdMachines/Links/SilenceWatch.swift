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

    /// A probe that bluetoothd has not answered.
    private struct UnansweredProbe: Equatable {
        let stream: Int
        let since: Duration
    }

    private let policy: Policy
    private var streams: [StreamSilence]
    /// The time of the last sign of life of the peripheral.
    private var alive: Duration
    /// The last probe, if bluetoothd has not answered it; `nil` while it answers.
    private var unanswered: UnansweredProbe?
    private var doubts: AdvertisementDoubts

    /// Creates a watch for one link.
    ///
    /// - Parameters:
    ///   - limits: The limit of each stream, and its memory from earlier links.
    ///   - policy: The durations and factors.
    ///   - now: The monotonic time.
    public init(_ limits: [(SilenceLimit, Memory)], policy: Policy = Policy(), at now: Duration) {
        (self.policy, alive) = (policy, now)
        doubts = AdvertisementDoubts(policy, at: now)
        streams = limits.map { StreamSilence($0, $1, policy, at: now) }
    }

    /// The memory of each stream, for the next link.
    public var memories: [Memory] { streams.map(\.memory) }

    /// Returns the time since the stream's last value.
    public func silence(of stream: Int, at now: Duration) -> Duration {
        streams.indices.contains(stream) ? streams[stream].silence(at: now) : now - alive
    }

    // MARK: - What happened

    /// Records the number of values that each stream has received so far.
    public mutating func count(_ counts: [UInt64], at now: Duration) {
        var hasValues = false
        for (index, count) in zip(streams.indices, counts) {
            hasValues = streams[index].setCount(count, at: now) || hasValues
        }
        guard hasValues else { return }
        alive = now
        doubts.dispel()
    }

    /// Records an advertisement of the peripheral although it counts as connected.
    public mutating func doubt(at now: Duration) {
        guard now - alive >= policy.freshness else { return }
        doubts.advertised(at: now)
    }

    // MARK: - What to do

    /// Returns the step that is due, if any.
    public mutating func next(at now: Duration) -> Step? {
        if let unanswered {
            if alive > unanswered.since { return resume() }
            if now >= unanswered.since + policy.retry { return .probe(stream: unanswered.stream) }
        }
        if doubts.startProbe() { return .probe(stream: 0) }
        while let index = streams.firstIndex(where: { $0.isDue(at: now) }) {
            if streams[index].wasKeptPastStatedLimit { return recycle(index, .limit, at: now) }
            guard !streams[index].hasStatedLimit, now - alive < policy.bounds.lowerBound / 2 else {
                return .probe(stream: index)
            }
            // Another stream has values, so the link is alive.
            streams[index].postpone(at: now)
        }
        return nil
    }

    /// Records the outcome of a probe that began at `start`, and returns the next step.
    public mutating func probed(_ outcome: Outcome, stream: Int, since start: Duration, at now: Duration) -> Step? {
        switch outcome {
        case .answered(let isSubscribed): return answered(stream, isSubscribed: isSubscribed, at: now)
        case .unanswered where alive > start:
            if streams.indices.contains(stream) { streams[stream].postpone(at: now) }
            return nil
        case .unanswered: return recycle(stream, .noAnswer, at: now)
        case .serviceUnanswered: return stall(stream, at: now)
        }
    }

    private mutating func answered(_ stream: Int, isSubscribed: Bool, at now: Duration) -> Step? {
        alive = now
        if !isSubscribed, streams.indices.contains(stream), streams[stream].mayResubscribe(at: now) {
            return recycle(stream, .forgottenSubscription, at: now)
        }
        for index in streams.indices
        where index == stream || streams[index].isDue(at: now) && !streams[index].hasStatedLimit {
            streams[index].postpone(at: now)
        }
        return unanswered == nil ? nil : resume()
    }

    private mutating func stall(_ stream: Int, at now: Duration) -> Step {
        for index in streams.indices where index == stream || streams[index].isDue(at: now) {
            streams[index].repeatProbe(at: now)
        }
        unanswered = UnansweredProbe(stream: stream, since: now)
        return .stall(stream: stream, silence: silence(of: stream, at: now))
    }

    private mutating func resume() -> Step {
        unanswered = nil
        return .resume
    }

    private mutating func recycle(_ stream: Int, _ cause: Cause, at now: Duration) -> Step {
        if streams.indices.contains(stream) { streams[stream].recycle(cause, at: now) }
        return .recycle(stream: stream, silence: silence(of: stream, at: now), cause)
    }

    // MARK: - Time

    /// The time of the next count and of the next call of ``next(at:)``.
    public func deadline(at now: Duration) -> Duration {
        guard !doubts.isDue else { return now }
        let repetition = unanswered.map { $0.since + policy.retry }
        let deadlines = streams.map { $0.deadline(after: now) } + [repetition]
        return deadlines.compactMap(\.self).min() ?? now + policy.longestPause
    }

    /// Returns true if no stream has new values and no step is due, so that a count would change nothing.
    public func isIdle(_ counts: [UInt64], at now: Duration) -> Bool {
        let isSilent = zip(streams, counts).allSatisfy { $0.isCounted($1) }
        return isSilent && unanswered == nil && !doubts.isDue && !streams.contains { $0.isDue(at: now) }
    }
}

/// The doubts whether a link is up, because its peripheral advertises; the pauses between their probes grow.
private struct AdvertisementDoubts: Equatable {
    private let pause: Backoff
    /// The number of probes since the last value.
    private var probes = 0
    /// The time before which advertisements do not count.
    private var notBefore: Duration
    /// True if a probe is due.
    private(set) var isDue = false

    init(_ policy: SilenceWatch.Policy, at now: Duration) {
        pause = Backoff(minimum: policy.doubt, maximum: policy.longestPause)
        notBefore = now + policy.lateAdvertisements
    }

    mutating func advertised(at now: Duration) {
        guard now >= notBefore else { return }
        isDue = true
        probes += 1
        notBefore = now + pause.ceiling(after: probes)
    }

    /// Returns true once if a probe is due.
    mutating func startProbe() -> Bool {
        defer { isDue = false }
        return isDue
    }

    /// Ends all doubts, because a value has arrived.
    mutating func dispel() { (probes, isDue) = (0, false) }
}
