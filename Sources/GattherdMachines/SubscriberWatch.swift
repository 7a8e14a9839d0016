import GattherdModel

/// Which topics had subscribers, so that a missing one is told from one that never was.
///
/// Subscribers lose a broker when we do, and come back when their own backoff lets them, often later
/// than we. MQTT 5 lets us see it: PUBACK 0x10, "no matching subscribers", for a topic that had some.
struct SubscriberWatch: Sendable {
    private struct Topic: Hashable {
        let device: String
        let stream: String

        init(of reading: LoggedReading) {
            device = reading.device
            stream = reading.stream
        }
    }

    private var subscribed: Set<Topic> = []
    private var assumedThrough = Int64.min

    /// Assumes subscribers for every reading up to `seq`: nobody could tell us of them.
    mutating func assume(through seq: Int64) {
        assumedThrough = seq
    }

    mutating func found(for reading: LoggedReading) {
        subscribed.insert(Topic(of: reading))
    }

    func expects(for reading: LoggedReading) -> Bool {
        reading.seq <= assumedThrough || subscribed.contains(Topic(of: reading))
    }

    /// Expects nobody any more for what the device has said.
    mutating func forget(_ device: String) {
        subscribed = subscribed.filter { $0.device != device }
    }

    /// Expects nobody any more; who still is there is found again with the next reading.
    mutating func forget() {
        subscribed.removeAll()
        assumedThrough = .min
    }
}
