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

    /// True if the reading is still the newest of its topic, and was not published in the session.
    func isMissing(_ reading: JournalReading, on topic: String, in session: Int) -> Bool {
        newest[topic].map { $0.reading.seq == reading.seq && $0.session != session } ?? false
    }

    /// The newest readings of topics on which none was published in the session, in journal order.
    func missing(in session: Int) -> [JournalReading] {
        newest.values.filter { $0.session != session }.map(\.reading).sorted { $0.seq < $1.seq }
    }
}

/// The search for the gateway's retained state, which shows whether the broker keeps retained messages.
///
/// The subscription to the state is sent before `online`. A broker that keeps retained messages then sends the state of
/// the last session, which is at least the last will.
struct RetainedStateCheck: Hashable {
    /// The session in which the state was missing; `nil` once the readings are published again.
    private var missingSince: Int?
    private var foundIn: Int?

    /// True until the readings are published again to a broker that has lost its retained messages.
    var isLost: Bool { missingSince != nil }

    /// Records that the broker accepted the subscription; it sends the retained state at about the same time.
    mutating func subscribed(in session: Int) {
        if foundIn != session, missingSince == nil { missingSince = session }
    }

    /// Records that the broker sent the retained state.
    mutating func found(in session: Int) {
        foundIn = session
        // A later session finds the state that this one has published.
        if missingSince == session { missingSince = nil }
    }

    /// Records that the readings are published again.
    mutating func repaired() { missingSince = nil }
}

/// A reading that is published again to a broker that has lost its retained messages.
struct RepeatedReading {
    let reading: JournalReading
    /// The number of times that the broker has refused it.
    var refusals = 0
}
