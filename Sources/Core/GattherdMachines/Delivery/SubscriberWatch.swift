import GattherdModel

/// The topics that had subscribers, so that a reading without one can wait for them after a reconnect.
///
/// Subscribers lose a broker when the gateway does, and return when their own backoff lets them. MQTT 5
/// shows that one is missing: PUBACK 0x10, "no matching subscribers", for a topic that had some. Within a
/// session the same PUBACK means that the subscriber has left, which concerns nobody else.
struct SubscriberWatch: Sendable {
    private struct Topic: Hashable {
        let device: String
        let stream: String

        init(of reading: JournalReading) {
            device = reading.device
            stream = reading.stream
        }
    }

    private var subscribed: Set<Topic> = []
    private var assumedThrough = Int64.min

    /// Assumes subscribers for every reading up to `seq`: no broker was there that could have told.
    mutating func assume(through seq: Int64) {
        assumedThrough = seq
    }

    /// Records that somebody is subscribed to the topic of `reading`.
    mutating func found(for reading: JournalReading) {
        subscribed.insert(Topic(of: reading))
    }

    /// Records that nobody is subscribed to the topic of `reading` any more.
    mutating func left(_ reading: JournalReading) {
        subscribed.remove(Topic(of: reading))
    }

    /// True if the topic of `reading` had subscribers in the session before.
    func expects(for reading: JournalReading) -> Bool {
        reading.seq <= assumedThrough || subscribed.contains(Topic(of: reading))
    }

    /// Removes the topics of a device.
    mutating func forget(_ device: String) {
        subscribed = subscribed.filter { $0.device != device }
    }

    /// Ends the assumption of ``assume(through:)``.
    mutating func endAssumption() {
        assumedThrough = .min
    }
}
