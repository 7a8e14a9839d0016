import GattherdMQTT
import GattherdMachines

/// Bounds the time for which the broker may answer readings on one topic with "busy" or without a reason.
///
/// A broker that accepts another topic meanwhile is not busy. It refuses this topic, and the topic is set aside. If the
/// broker accepts nothing, a reason such as "quota exceeded" counts as busy without a time limit. A reading refused
/// without a reason is skipped. Answers of an earlier session are no proof, because the broker may have restarted.
struct BusyTopics {
    enum Verdict: Hashable {
        /// The verdict on the reading alone.
        case reading(PublishOutcome.Verdict)
        /// The broker refuses the topic, and with it the reading.
        case topicRefused(String)
    }

    private struct Busy {
        let since: Duration
        /// True if the broker has accepted another topic since.
        var isOtherAccepted = false
    }

    /// The maximum number of busy topics.
    private static let capacity = 1000

    private let timeout: Duration
    private var topics: [String: Busy] = [:]

    init(timeout: Duration) {
        self.timeout = timeout
    }

    /// Clears all answers at the start of a session.
    mutating func startSession() { topics = [:] }

    /// Returns the verdict on an answered reading; the time is needed for busy answers only.
    mutating func verdict(_ reason: MQTTReason, on topic: String, at time: @autoclosure () -> Duration) -> Verdict {
        guard case .busy(let words) = reason.verdict else {
            if !reason.isFailure { recordAcceptance(of: topic) }
            return .reading(reason.verdict)
        }
        let now = time()
        if topics[topic] == nil, topics.count >= Self.capacity { topics.removeAll() }
        let busy = topics[topic] ?? Busy(since: now)
        topics[topic] = busy
        guard now - busy.since >= timeout, busy.isOtherAccepted || reason.isVague else {
            return .reading(reason.verdict)
        }
        topics[topic] = nil
        return busy.isOtherAccepted ? .topicRefused(words) : .reading(.refused(words))
    }

    /// Records that the broker accepted a message on a topic.
    mutating func recordAcceptance(of topic: String) {
        guard !topics.isEmpty else { return }
        topics[topic] = nil
        for other in topics.keys { topics[other]?.isOtherAccepted = true }
    }
}
