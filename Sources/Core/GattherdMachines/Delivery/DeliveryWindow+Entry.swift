import GattherdModel

extension DeliveryWindow {
    enum State {
        case unsent
        case inFlight
        case acknowledged
        /// Excluded from publication.
        case skipped
    }

    struct Entry {
        let reading: JournalReading
        var state = State.unsent
        var wasSent = false
        /// The time at which it was sent last.
        var sentAt = Duration.zero
        /// The group of readings with which it is published; `nil` if it is published alone.
        var group: Int?
        /// True for the first reading of a message.
        var isFirst = true
        /// True if the reading was delayed, and the cursor has passed it before.
        var isLate = false
        /// True if the broker has acknowledged it; a reading of QoS 0 counts as delivered without that.
        var isConfirmed = false
        /// True if the broker acknowledged it in the last session, and it was not sent since.
        var isKept = false

        /// True if the cursor may pass the entry.
        var mayPass: Bool { state == .acknowledged || state == .skipped }

        /// The time at which the cursor passed the entry, or at which it was acknowledged behind the cursor.
        var passedAt = Duration.zero

        mutating func markSent(at time: Duration) {
            (state, wasSent, isKept, sentAt) = (.inFlight, true, false, time)
        }
    }
}
