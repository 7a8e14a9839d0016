/// The broker's answer to one published reading.
public struct PublishOutcome: Hashable, Sendable {
    public enum Verdict: Hashable, Sendable {
        case accepted
        /// Accepted without a subscriber (MQTT 5 reason 0x10); MQTT 3.1.1 cannot report this.
        case noSubscribers
        /// Not accepted now: a quota, or a busy broker.
        case busy(String)
        /// Not sent yet: its topic waits until another one is accepted.
        case deferred
        /// Permanently refused: not authorised, or an invalid topic.
        case refused(String)
    }

    public let seq: Int64
    public let verdict: Verdict

    public init(seq: Int64, _ verdict: Verdict) {
        self.seq = seq
        self.verdict = verdict
    }
}
