/// The topics that the broker accepted and refused in one session.
///
/// Accepted topics prove that a refusal concerns one topic, and not the whole broker.
struct SessionProof: Sendable {
    /// The refusals of a topic by answers, since the broker last accepted it.
    private struct Refusals {
        let since: Duration
        /// The number of refusals, counting only those with an accepted message on another topic in between.
        var count = 0
        /// The value of ``acceptances`` at the last counted refusal.
        var acceptances = 0
    }

    /// The maximum number of refused topics.
    private static let capacity = 1000

    private let limit: Int
    private let duration: Duration
    /// Up to two topics on which the broker accepted messages.
    private var accepted: [String] = []
    private var refused: [String: Refusals] = [:]
    /// The number of accepted messages while ``refused`` was not empty.
    private var acceptances = 0
    /// The time of the first refusal since the last acceptance.
    private var acceptsNothingSince: Duration?

    /// - Parameters:
    ///   - limit: The number of refusals that are proof, with acceptances between them.
    ///   - duration: The time for which a topic must be refused.
    init(refusals limit: Int, during duration: Duration) {
        (self.limit, self.duration) = (limit, duration)
    }

    /// True if the broker has accepted a message on another topic.
    func isAccepting(without topic: String) -> Bool { accepted.contains { $0 != topic } }

    /// Records that the broker accepted a message, as proof against all other topics that it has refused.
    mutating func accepted(_ topic: String) {
        if !refused.isEmpty {
            acceptsNothingSince = nil
            acceptances += 1
            refused[topic] = nil
        }
        if accepted.count < 2, !accepted.contains(topic) { accepted.append(topic) }
    }

    /// Records a refusal; returns true if the broker has refused the topic often and accepted others in between.
    mutating func refused(_ topic: String, at now: Duration) -> Bool {
        if refused[topic] == nil, refused.count >= Self.capacity { refused.removeAll() }
        var refusals = refused[topic] ?? Refusals(since: now)
        if refusals.count == 0 || acceptances > refusals.acceptances {
            refusals.count += 1
            refusals.acceptances = acceptances
        }
        refused[topic] = refusals
        return refusals.count >= limit && now - refusals.since >= duration
    }

    /// Records a refusal without proof; returns the time since which the broker has accepted no topic.
    mutating func acceptsNothing(at now: Duration) -> Duration {
        let since = acceptsNothingSince ?? now
        acceptsNothingSince = since
        return since
    }

    /// Removes the refusals of a topic.
    mutating func remove(_ topic: String) {
        refused[topic] = nil
    }

    /// Removes everything, for a new session.
    mutating func removeAll() {
        self = SessionProof(refusals: limit, during: duration)
    }
}
