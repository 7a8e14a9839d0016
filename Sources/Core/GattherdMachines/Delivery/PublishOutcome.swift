/// What the broker said of one published reading.
public struct PublishOutcome: Hashable, Sendable {
    public enum Verdict: Hashable, Sendable {
        case accepted
        /// Taken, but nobody is subscribed (MQTT 5 reason 0x10); MQTT 3.1.1 cannot say this.
        case noSubscribers
        /// Not taken now: a quota, a busy broker.
        case busy(String)
        /// Not sent yet: its topic waits until another one is accepted.
        case deferred
        /// Never to be taken: not authorised, the topic is invalid.
        case refused(String)
    }

    public let seq: Int64
    public let verdict: Verdict

    public init(seq: Int64, _ verdict: Verdict) {
        self.seq = seq
        self.verdict = verdict
    }
}
