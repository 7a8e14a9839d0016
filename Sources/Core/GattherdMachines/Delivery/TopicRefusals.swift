/// The topics that the broker refuses, and the search for the refused topic after a lost session.
///
/// MQTT 5 names a refused topic by its PUBACK. A broker whose access list is damaged refuses all of them. So a topic is
/// set aside only after ``blameLimit`` refusals, between which the broker accepted messages on other topics.
///
/// Other brokers end the session, again at each attempt, so one topic would stop all delivery. Brokers process packets
/// in order: of the packets without an acknowledgement, the first is the likeliest cause. Its topic is blamed, and an
/// acknowledgement clears a topic. In the session after such an end packets are sent one at a time (``isCautious``), so
/// that no other topic can be blamed.
///
/// A topic is set aside after ``blameLimit`` blames. A blame counts only with proof that the broker accepts something
/// else: a message on another topic that it accepted in the same session. Without proof the topic is deferred: the
/// next session sends it behind the others (``defers(_:at:)``). If the broker accepts no topic at all, it is faulty,
/// and all blames are removed. The first topic must also have been blamed for some time, because a broker may fail
/// for a moment. The same holds for each topic while its message may be too large, because the next one is smaller.
///
/// Time is passed in, counted from any fixed instant.
public struct TopicRefusals: Sendable {
    /// A topic that is set aside.
    public struct Refusal: Hashable, Sendable {
        public let topic: String
        /// The broker's reason, for display.
        public let reason: String
        /// The time of the next attempt with one packet.
        public var retryAt: Duration
        var pause: Duration
    }

    /// A verdict on a session that the broker ended.
    public enum Finding: Hashable, Sendable {
        /// The topic is set aside.
        case setAside(String)
        /// The broker accepts no topic.
        case brokerAcceptsNothing
        /// The first packet without an answer was on a topic that a requester chose.
        case chosenTopic
    }

    /// The conclusion from an answer that refuses a packet.
    public enum Answer: Hashable, Sendable {
        /// The topic is set aside now.
        case setAside(String)
        /// The topic was set aside earlier.
        case isSetAside
        /// The broker has accepted nothing else since the first refusal; the message should be sent again.
        case unproven
        /// The broker has accepted nothing else for longer than a broker may fail.
        case brokerAcceptsNothing
        /// The packet is not known, or a requester chose its topic.
        case ignored
    }

    /// The durations of the search.
    public struct Options: Sendable {
        /// The least time from the first refusal until a topic is set aside.
        ///
        /// The first blame counts like a refusal if no other topic is set aside, or if the message may be too large.
        public var delay = Duration.seconds(20)
        /// The pause before a topic is tried again; each is twice as long as the one before, up to six times this.
        public var retryPause = Duration.seconds(600)
        /// The time from the start of a session in which deferred topics wait for others to be accepted.
        public var deferral = Duration.seconds(5)
        /// The time for which a broker must refuse every message before the fault is reported.
        public var faultDelay = Duration.seconds(60)

        public init() {}
    }

    /// The blames or refusals after which a topic is set aside.
    public static let blameLimit = 3
    /// The longest pause, as a multiple of the first.
    private static let longestPauseFactor = 6
    /// The longest time for which packets are sent one at a time.
    private static let caution = Duration.seconds(10)
    /// The maximum number of topics that are remembered.
    private static let capacity = 1000
    /// The maximum number of deferred topics; a broker that fails at more topics is faulty.
    private static let deferredCapacity = 16

    /// The origin of a packet's topic, and its role in the search.
    public enum Origin: Sendable {
        /// A message that the next session sends again if it is not answered.
        case message
        /// A message that the next session does not send again.
        case transientMessage
        /// A subscription; its acknowledgement proves nothing about messages.
        case subscription
        /// A message on a topic that a requester chose; never blamed, never set aside.
        case chosenTopic

        /// True if an acceptance proves that the broker accepts messages.
        var isMessage: Bool { self == .message || self == .transientMessage }
    }

    private struct Blame {
        var count = 0
        let since: Duration
    }

    private let options: Options

    private var sent = SentPackets()
    private var proof: SessionProof
    /// The topics that were not acknowledged when the broker ended the last session.
    private var suspects: Set<String> = []
    private var cautiousUntil = Duration.zero
    private var blames: [String: Blame] = [:]
    /// Topics at which sessions ended before the broker had accepted another one, in order.
    private var deferred: [String] = []
    private var deferredUntil = Duration.zero
    /// The number of times that the broker acknowledged later messages and not one on the topic.
    private var omissions: [String: Int] = [:]
    private var refusals: [String: Refusal] = [:] {
        didSet { all = refusals.values.sorted { $0.topic < $1.topic } }
    }

    /// The topics that are set aside, sorted by name.
    public private(set) var all: [Refusal] = []

    public init(_ options: Options = Options()) {
        self.options = options
        proof = SessionProof(refusals: Self.blameLimit, during: options.delay)
    }

    /// True while packets should be sent one at a time.
    public var isCautious: Bool { !suspects.isEmpty }

    public var isEmpty: Bool { refusals.isEmpty }

    /// The refusal of a topic that is set aside.
    public subscript(topic: String) -> Refusal? { refusals[topic] }

    /// True if a packet for the topic may be sent; a topic that is set aside may be tried again after its pause.
    public mutating func admits(_ topic: String, at now: Duration) -> Bool {
        guard !refusals.isEmpty, var refusal = refusals[topic] else { return true }
        guard now >= refusal.retryAt else { return false }
        refusal.pause = min(refusal.pause * 2, options.retryPause * Self.longestPauseFactor)
        refusal.retryAt = now + refusal.pause
        refusals[topic] = refusal
        return true
    }

    /// True while a packet for the topic should wait until the broker has accepted another topic.
    public func defers(_ topic: String, at now: Duration) -> Bool {
        !deferred.isEmpty && now < deferredUntil && deferred.contains(topic) && !proof.isAccepting(without: topic)
    }

    /// The end of the deferral; `nil` if no topic is deferred.
    public var deferralEnd: Duration? { deferred.isEmpty ? nil : deferredUntil }

    /// Records a packet that is sent.
    ///
    /// - Parameters:
    ///   - topic: Its topic, or the filter of a subscription.
    ///   - identifier: The identifier of the broker's answer; 0 for none.
    ///   - origin: The origin of the topic.
    public mutating func sent(_ topic: String, identifier: UInt16, _ origin: Origin) {
        sent.append(SentPackets.Packet(topic: topic, identifier: identifier, origin: origin))
    }

    /// Records that the broker acknowledged a packet, and so has processed all before it.
    ///
    /// - Parameters:
    ///   - identifier: The packet identifier.
    ///   - isAccepted: True if the broker accepted the packet; false if it only answered.
    /// - Returns: The topics that were set aside and are accepted again.
    public mutating func acknowledged(_ identifier: UInt16, isAccepted: Bool = true) -> [String] {
        guard let end = sent.position(of: identifier) else { return [] }
        var returned: [String] = []
        if isSearching {
            for packet in sent.unanswered[...end] where packet.origin != .chosenTopic {
                blames[packet.topic] = nil
                suspects.remove(packet.topic)
                if refusals[packet.topic] != nil {
                    refusals[packet.topic] = nil
                    returned.append(packet.topic)
                }
            }
            omissions[sent.unanswered[end].topic] = nil
            deferred.removeAll { $0 == sent.unanswered[end].topic }
        }
        if isAccepted, sent.unanswered[end].origin.isMessage { proof.accepted(sent.unanswered[end].topic) }
        sent.remove(through: end)
        return returned
    }

    private var isSearching: Bool {
        !blames.isEmpty || !suspects.isEmpty || !refusals.isEmpty || !deferred.isEmpty || !omissions.isEmpty
    }

    /// Records that the broker refused a packet by its answer.
    ///
    /// - Parameters:
    ///   - identifier: The packet identifier.
    ///   - topic: The topic of a reading. Its packet may be forgotten: brokers may answer out of order, and many others
    ///     may have followed it.
    ///   - reason: The broker's reason, for display.
    ///   - isProven: True if the broker is known to accept other topics.
    ///   - now: The time.
    /// - Returns: The conclusion.
    public mutating func refused(
        _ identifier: UInt16,
        on topic: String? = nil,
        _ reason: String,
        isProven: Bool = false,
        at now: Duration
    ) -> Answer {
        guard let topic = removeRefused(identifier) ?? topic else { return .ignored }
        guard refusals[topic] == nil else { return .isSetAside }
        guard isProven || proof.refused(topic, at: now) else {
            return now - proof.acceptsNothing(at: now) >= options.faultDelay ? .brokerAcceptsNothing : .unproven
        }
        return setAside(topic, reason, at: now).map(Answer.setAside) ?? .isSetAside
    }

    /// Removes a refused packet with all before it; returns its topic unless a requester chose it.
    private mutating func removeRefused(_ identifier: UInt16) -> String? {
        guard let end = sent.position(of: identifier) else { return nil }
        let packet = sent.unanswered[end]
        sent.remove(through: end)
        return packet.origin == .chosenTopic ? nil : packet.topic
    }

    /// Records that the broker acknowledged later packets and not this one, which is on `topic`.
    ///
    /// - Returns: The topic, if this sets it aside.
    public mutating func omitted(_ topic: String, at now: Duration) -> String? {
        if omissions.count >= Self.capacity { omissions.removeAll() }
        let count = omissions[topic, default: 0] + 1
        omissions[topic] = count
        guard count >= Self.blameLimit else { return nil }
        return setAside(topic, "it acknowledges later messages, and never one on this topic", at: now)
    }

    /// Records that a session began, without any packet in flight.
    public mutating func began(at now: Duration) {
        sent.removeAll()
        proof.removeAll()
        cautiousUntil = now + Self.caution
        deferredUntil = now + options.deferral
    }

    /// Ends the caution if it has lasted too long.
    ///
    /// - Returns: True if it ended now.
    public mutating func relax(at now: Duration) -> Bool {
        guard isCautious, now >= cautiousUntil else { return false }
        suspects = []
        return true
    }

    /// The time at which ``relax(at:)`` has an effect.
    public var relaxAt: Duration? { isCautious ? cautiousUntil : nil }

    /// Records that the broker ended the session.
    ///
    /// - Parameters:
    ///   - reason: The broker's reason, or a text that it gave none, for display.
    ///   - mayBeTooLarge: True if the session may have ended because of the size of a message, and the next session
    ///     sends a smaller one.
    ///   - now: The time.
    /// - Returns: The conclusion, if there is one.
    public mutating func sessionEnded(
        _ reason: String,
        mayBeTooLarge: Bool = false,
        at now: Duration
    ) -> Finding? {
        let unanswered = sent.unanswered
        suspects = Set(unanswered.filter { $0.origin == .message || $0.origin == .subscription }.map(\.topic))
        let first = unanswered.first
        sent.removeAll()
        // A packet without an answer may have been accepted.
        guard let first, first.identifier != 0 else { return nil }
        if first.origin == .chosenTopic { return .chosenTopic }
        // A topic that was tried again stays set aside.
        guard refusals[first.topic] == nil else {
            suspects.remove(first.topic)
            return nil
        }
        guard proof.isAccepting(without: first.topic) else { return postpone(first.topic) }
        guard recordBlame(first.topic, needsTime: refusals.isEmpty || mayBeTooLarge, at: now) else { return nil }
        return setAside(first.topic, reason, at: now).map(Finding.setAside)
    }

    /// Defers a topic that was first in its session; a broker that fails at a deferred topic as well accepts nothing.
    private mutating func postpone(_ topic: String) -> Finding? {
        guard !deferred.contains(topic), deferred.count < Self.deferredCapacity else {
            deferred = []
            blames = [:]
            return .brokerAcceptsNothing
        }
        deferred.append(topic)
        return nil
    }

    /// Records a blame; returns true if the topic must be set aside.
    private mutating func recordBlame(_ topic: String, needsTime: Bool, at now: Duration) -> Bool {
        if blames.count >= Self.capacity { blames.removeAll() }
        var blame = blames[topic] ?? Blame(since: now)
        blame.count += 1
        blames[topic] = blame
        return blame.count >= Self.blameLimit && (!needsTime || now - blame.since >= options.delay)
    }

    private mutating func setAside(_ topic: String, _ reason: String, at now: Duration) -> String? {
        blames[topic] = nil
        omissions[topic] = nil
        proof.remove(topic)
        suspects.remove(topic)
        deferred.removeAll { $0 == topic }
        guard refusals[topic] == nil, refusals.count < Self.capacity else { return nil }
        let pause = options.retryPause
        refusals[topic] = Refusal(topic: topic, reason: reason, retryAt: now + pause, pause: pause)
        return topic
    }
}
