import GattherdModel

/// The newest retained reading of each topic, and the session in which it was published.
struct RetainedReadings {
    private var newest: [String: (reading: JournalReading, session: Int?)] = [:]

    /// Records a published reading; its samples are copied, because those of a whole commit share their storage.
    mutating func record(_ reading: JournalReading, on topic: String, in session: Int) {
        let copy = JournalReading(
            seq: reading.seq,
            stream: reading.stream,
            time: reading.time,
            source: reading.source,
            isStored: reading.isStored,
            samples: ArraySlice(Array(reading.samples))
        )
        newest[topic] = (copy, session)
    }

    /// Removes the readings of a removed device.
    mutating func remove(_ device: String) {
        newest = newest.filter { $0.value.reading.device != device }
    }

    /// Records that the broker did not accept the reading.
    mutating func refused(_ reading: JournalReading, on topic: String) {
        if newest[topic]?.reading.seq == reading.seq { newest[topic]?.session = nil }
    }

    /// True if the reading is still the newest of its topic, and was not published in this session or a later one.
    func isMissing(_ reading: JournalReading, on topic: String, since session: Int) -> Bool {
        newest[topic].map { $0.reading.seq == reading.seq && ($0.session ?? 0) < session } ?? false
    }

    /// The newest readings of topics on which none was published in this session or a later one, in journal order.
    ///
    /// Readings without an answer, or that the broker refused, follow all others, so that none of them delays those.
    func missing(since session: Int) -> [JournalReading] {
        let missing = newest.values.filter { ($0.session ?? 0) < session }
        return missing.sorted {
            ($0.session == nil ? 1 : 0, $0.reading.seq) < ($1.session == nil ? 1 : 0, $1.reading.seq)
        }
        .map(\.reading)
    }
}

/// The search for the gateway's retained state, which shows whether the broker keeps retained messages.
///
/// The subscription to the state is sent before `online`. A broker that keeps retained messages then sends the state of
/// the last session, which is at least the last will.
struct RetainedStateCheck: Hashable {
    /// A session in which the state was missing.
    struct Loss: Hashable {
        let session: Int
        /// The time at which the broker accepted the subscription.
        let time: Duration
    }

    /// The newest loss; `nil` once the readings are published again.
    private(set) var loss: Loss?
    /// The loss before it, which counts again if the state of the newest session arrives late.
    private var earlier: Loss?
    private var foundIn: Int?

    /// Records that the broker accepted the subscription; it sends the retained state at about the same time.
    ///
    /// A broker that has lost the state again has lost what was published meanwhile.
    mutating func subscribed(in session: Int, at now: Duration) {
        guard foundIn != session, loss?.session != session else { return }
        (earlier, loss) = (loss, Loss(session: session, time: now))
    }

    /// Records that the broker sent the retained state.
    mutating func found(in session: Int) {
        foundIn = session
        // A later session finds the state that this one has published.
        if loss?.session == session { (loss, earlier) = (earlier, nil) }
    }

    /// Records that the readings are published again.
    mutating func repaired() { (loss, earlier) = (nil, nil) }
}

/// A reading that is published again to a broker that has lost its retained messages.
struct RepeatedReading {
    let reading: JournalReading
    /// The number of times that the broker has refused it.
    var refusals = 0
}
