import GattherdModel

/// The topics that had subscribers, so that a reading without one can wait for them after a reconnect.
///
/// Subscribers lose a broker when the gateway does, and return after their own backoff. MQTT 5 reports a missing
/// subscriber: PUBACK 0x10, "no matching subscribers", for a topic that had some. Within a session the same PUBACK
/// means that the subscriber has left, and nothing waits for it.
struct SubscriberWatch: Sendable {
    private struct Topic: Hashable {
        let device: String
        let stream: String

        init(of reading: JournalReading) {
            device = reading.device
            stream = reading.stream.stream
        }
    }

    /// The maximum number of definitions that are remembered; a backlog creates one for each page and stream.
    private static let maximumDefinitions = 4096

    private var subscribed: Set<Topic> = []
    /// The definitions of streams in ``subscribed``, kept so that no other one has its identity.
    private var definitions: [ObjectIdentifier: StreamDefinition] = [:]
    private var assumedThrough = Int64.min
    /// The end of the wait for missing subscribers; `nil` in a first session, and once a subscriber is back.
    private var due: Duration?

    /// Assumes subscribers for every reading up to `seq`, because no broker was there to report them.
    mutating func assume(through seq: Int64) {
        assumedThrough = seq
    }

    /// Records a subscriber of the topic of `reading`.
    mutating func found(for reading: JournalReading) {
        guard definitions[ObjectIdentifier(reading.stream)] == nil else { return }
        if definitions.count >= Self.maximumDefinitions { definitions = [:] }
        definitions[ObjectIdentifier(reading.stream)] = reading.stream
        subscribed.insert(Topic(of: reading))
    }

    /// Records that the topic of `reading` has no subscriber any more.
    mutating func left(_ reading: JournalReading) {
        if subscribed.remove(Topic(of: reading)) != nil { definitions = [:] }
    }

    /// Removes the topics of a device.
    mutating func remove(_ device: String) {
        definitions = [:]
        subscribed = subscribed.filter { $0.device != device }
    }

    // MARK: - The wait

    /// Starts the wait of a session after a reconnect.
    mutating func startWait(until due: Duration) { self.due = due }

    /// The end of the wait for a subscriber of the topic of `reading`; `nil` if none is expected.
    func waitEnd(for reading: JournalReading) -> Duration? {
        reading.seq <= assumedThrough || subscribed.contains(Topic(of: reading)) ? due : nil
    }

    /// Ends the wait, and the assumption of ``assume(through:)``; returns false if there was no wait.
    mutating func endWait() -> Bool {
        guard due != nil else { return false }
        (due, assumedThrough) = (nil, .min)
        return true
    }

    /// Ends the wait with its session; the next one may wait again.
    mutating func sessionEnded() { due = nil }
}
