/// The topics that the broker does not let us use, and the search for them.
///
/// MQTT 5 names them in PUBACK. Other brokers end the session, at each attempt anew, so that one topic would stop all.
/// Brokers work in order: of the packets that were not acknowledged at the end, the first is the likeliest reason. It is
/// blamed; a packet that is acknowledged was not the reason. In the session after such an end packets go out one at a time
/// (``isCautious``), so that nothing else can be blamed. A topic that is blamed ``patience`` times is set aside; the first
/// one not before it has been blamed for some time, for a broker may have a bad moment.
///
/// Time is passed in, counted from any fixed instant.
public struct TopicRefusals: Sendable {
    /// A topic that is set aside.
    public struct Refusal: Hashable, Sendable {
        public let topic: String
        /// The broker's reason, for people.
        public let reason: String
        /// When one packet is tried again.
        public var retryAt: Duration
        var pause: Duration
    }

    /// How often a topic is blamed before it is set aside.
    public static let patience = 3
    /// The pauses before a topic is tried again; each is twice as long as the one before.
    private static let pauses = Duration.seconds(600)...Duration.seconds(3600)
    /// The longest time for which packets go out one at a time.
    private static let caution = Duration.seconds(10)
    /// The topics that are remembered.
    private static let capacity = 1000
    /// The packets on their way that are remembered.
    private static let queueCapacity = 512

    private struct Packet {
        let topic: String
        let identifier: UInt16
        let recurs: Bool
    }

    private struct Blame {
        var count = 0
        let since: Duration
    }

    /// How long the first topic has to be blamed.
    private let delay: Duration

    /// Packets that the broker has not answered, in order.
    private var sent: [Packet] = []
    private var firstSent = 0
    /// The topics that were not acknowledged when the broker ended the last session.
    private var suspects: Set<String> = []
    private var cautiousUntil = Duration.zero
    private var blames: [String: Blame] = [:]
    private var refusals: [String: Refusal] = [:]

    /// - Parameter delay: How long the first topic has to be blamed before it is set aside.
    public init(delay: Duration = .seconds(20)) {
        self.delay = delay
    }

    /// True while packets should go out one at a time.
    public var isCautious: Bool { !suspects.isEmpty }

    public var all: [Refusal] { refusals.values.sorted { $0.topic < $1.topic } }
    public var isEmpty: Bool { refusals.isEmpty }

    /// True if the topic is set aside.
    public func holds(_ topic: String) -> Bool { refusals[topic] != nil }

    /// True if a packet for the topic may go out; one that is set aside may when its pause is over.
    public mutating func admits(_ topic: String, at now: Duration) -> Bool {
        guard !refusals.isEmpty, var refusal = refusals[topic] else { return true }
        guard now >= refusal.retryAt else { return false }
        refusal.pause = min(refusal.pause * 2, Self.pauses.upperBound)
        refusal.retryAt = now + refusal.pause
        refusals[topic] = refusal
        return true
    }

    /// Records a packet that goes out.
    ///
    /// - Parameters:
    ///   - topic: Its topic, or the filter of a subscription.
    ///   - identifier: The identifier of the broker's answer; 0 for none.
    ///   - recurs: True if the next session sends it again, should it not be answered.
    public mutating func sent(_ topic: String, identifier: UInt16, recurs: Bool) {
        sent.append(Packet(topic: topic, identifier: identifier, recurs: recurs))
        guard sent.count - firstSent > Self.queueCapacity else { return }
        firstSent += 1
        if firstSent > Self.queueCapacity { forgetAnswered() }
    }

    /// Records that the broker acknowledged a packet, and so has accepted all before it.
    ///
    /// - Returns: The topics among them that were set aside and are not any more.
    public mutating func acknowledged(_ identifier: UInt16) -> [String] {
        guard let end = sent[firstSent...].firstIndex(where: { $0.identifier == identifier }) else { return [] }
        var accepted: [String] = []
        if !blames.isEmpty || !suspects.isEmpty || !refusals.isEmpty {
            for packet in sent[firstSent...end] {
                blames[packet.topic] = nil
                suspects.remove(packet.topic)
                if refusals.removeValue(forKey: packet.topic) != nil { accepted.append(packet.topic) }
            }
        }
        firstSent = end + 1
        forgetAnswered()
        return accepted
    }

    private mutating func forgetAnswered() {
        if firstSent == sent.count {
            sent.removeAll(keepingCapacity: true)
            firstSent = 0
        } else if firstSent > Self.queueCapacity {
            sent.removeFirst(firstSent)
            firstSent = 0
        }
    }

    /// Records that the broker refused a packet and said so.
    ///
    /// - Parameters:
    ///   - identifier: The packet's.
    ///   - reason: The broker's, for people.
    ///   - now: The time.
    /// - Returns: The topic, if it is set aside by that; `nil` if it was before.
    public mutating func refused(_ identifier: UInt16, _ reason: String, at now: Duration) -> String? {
        guard let end = sent[firstSent...].firstIndex(where: { $0.identifier == identifier }) else { return nil }
        let topic = sent[end].topic
        firstSent = end + 1
        forgetAnswered()
        return setAside(topic, reason, at: now)
    }

    /// Records that a session began, without anything on its way.
    public mutating func began(at now: Duration) {
        sent.removeAll(keepingCapacity: true)
        firstSent = 0
        cautiousUntil = now + Self.caution
    }

    /// Ends the caution when it has lasted too long; true if it ended by that.
    public mutating func relax(at now: Duration) -> Bool {
        guard isCautious, now >= cautiousUntil else { return false }
        suspects = []
        return true
    }

    /// When ``relax(at:)`` has something to do.
    public var relaxAt: Duration? { isCautious ? cautiousUntil : nil }

    /// Records that the broker ended the session.
    ///
    /// - Parameters:
    ///   - reason: What the broker said, or that it said nothing; for people.
    ///   - now: The time.
    /// - Returns: The topic that is set aside by that, if any.
    public mutating func sessionEnded(_ reason: String, at now: Duration) -> String? {
        let unanswered = sent[firstSent...]
        suspects = Set(unanswered.filter(\.recurs).map(\.topic))
        // Nobody can tell whether one that is never answered was accepted.
        let first = unanswered.first.flatMap { $0.identifier == 0 ? nil : $0.topic }
        sent.removeAll(keepingCapacity: true)
        firstSent = 0
        guard let first else { return nil }
        // One that was tried again stays aside.
        guard refusals[first] == nil else {
            suspects.remove(first)
            return nil
        }
        return isConvicted(first, at: now) ? setAside(first, reason, at: now) : nil
    }

    /// Blames a topic; true if that was often enough.
    private mutating func isConvicted(_ topic: String, at now: Duration) -> Bool {
        if blames.count >= Self.capacity { blames.removeAll() }
        var blame = blames[topic] ?? Blame(since: now)
        blame.count += 1
        blames[topic] = blame
        return blame.count >= Self.patience && (!refusals.isEmpty || now - blame.since >= delay)
    }

    private mutating func setAside(_ topic: String, _ reason: String, at now: Duration) -> String? {
        blames[topic] = nil
        suspects.remove(topic)
        guard refusals[topic] == nil, refusals.count < Self.capacity else { return nil }
        let pause = Self.pauses.lowerBound
        refusals[topic] = Refusal(topic: topic, reason: reason, retryAt: now + pause, pause: pause)
        return topic
    }
}
