/// The watch for readings in flight that the broker does not acknowledge in time.
///
/// Two readings are watched. The oldest one holds up the cursor. A younger one may have been left out by the broker,
/// which has acknowledged another that was sent much later. While the broker holds back the oldest reading, the cursor
/// does not show this.
struct AcknowledgementWatch: Sendable {
    private struct Awaited: Hashable, Sendable {
        let seq: Int64
        let since: Duration
    }

    /// The maximum wait for an acknowledgement.
    private let limit: Duration
    /// The reading in flight that holds up the cursor, and since when.
    private var awaited: Awaited?
    /// The sending time of the newest reading that the broker has answered in this session.
    private var answeredSentAt = Duration.zero
    /// The time of the next search for readings that the broker has left out; `nil` while none is in flight.
    private var searchAt: Duration?
    /// The last reading that the broker did not acknowledge in time, in whatever session.
    private var overdue: Int64?

    init(limit: Duration) {
        self.limit = limit
    }

    /// Ends the watch with its session.
    mutating func reset() {
        (awaited, searchAt, answeredSentAt) = (nil, nil, .zero)
    }

    /// True if an earlier session ended because this reading was not acknowledged; others need not wait for it.
    func isOverdue(_ seq: Int64?) -> Bool { overdue != nil && seq == overdue }

    /// Records the readings in flight.
    ///
    /// - Parameters:
    ///   - seq: The one that holds up the cursor, if any.
    ///   - isAnyInFlight: True if any reading is in flight.
    ///   - now: The time.
    mutating func update(_ seq: Int64?, isAnyInFlight: Bool, at now: Duration) {
        if awaited?.seq != seq { awaited = seq.map { Awaited(seq: $0, since: now) } }
        searchAt = isAnyInFlight ? searchAt ?? now + limit : nil
    }

    /// Records that the broker has answered a reading that was sent at this time.
    mutating func answered(sentAt: Duration) {
        answeredSentAt = max(answeredSentAt, sentAt)
    }

    /// The time at which ``timeOut(at:sentBefore:)`` must be called; `nil` while no reading is in flight.
    var deadline: Duration? {
        [awaited.map { $0.since + limit }, searchAt].compactMap(\.self).min()
    }

    /// Ends the wait for the reading that the broker has not acknowledged in time, if any.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - sentBefore: Returns the first reading in flight that was sent before a time.
    /// - Returns: That reading.
    mutating func timeOut(at now: Duration, sentBefore: (Duration) -> Int64?) -> Int64? {
        guard let late = lateReading(at: now, sentBefore) else { return nil }
        overdue = late
        return late
    }

    private mutating func lateReading(at now: Duration, _ sentBefore: (Duration) -> Int64?) -> Int64? {
        if let awaited, now >= awaited.since + limit { return awaited.seq }
        guard let searchAt, now >= searchAt else { return nil }
        self.searchAt = now + limit
        return sentBefore(answeredSentAt - limit)
    }
}
