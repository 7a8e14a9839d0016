import GattherdModel

/// The call of the sink; there is at most one at a time.
struct SinkCall: Sendable {
    enum Work: Hashable, Sendable {
        /// Writes the first `count` fetched entries, and moves the receiver's cursor to `through`.
        case write(count: Int, through: Int64)
        /// Asks for the receiver's cursor.
        case cursor
        case record(JournalGap)
    }

    /// An ended call.
    struct Ended {
        let work: Work
        let wasCancelled: Bool
        let duration: Duration
    }

    /// The number of the last call.
    private(set) var ticket = 0
    /// The time at which the call is cancelled; `nil` without a call, and after that.
    private(set) var end: Duration?
    private var work: Work?
    private var start = Duration.zero

    var isRunning: Bool { work != nil }
    /// True if the call has not been cancelled.
    var isWanted: Bool { end != nil }

    /// The number of entries in the sink.
    var count: Int {
        if case .write(let count, _) = work { count } else { 0 }
    }

    /// Starts a call; returns its ticket.
    mutating func start(_ work: Work, at now: Duration, limit: Duration) -> Int {
        ticket += 1
        (self.work, start, end) = (work, now, now + limit)
        return ticket
    }

    /// Cancels the call; its end is still awaited.
    mutating func cancel() -> [BatchMachine.Effect] {
        guard isWanted else { return [] }
        end = nil
        return [.cancelWrite(ticket: ticket)]
    }

    /// Records the end of the call with this ticket; `nil` if it has ended already.
    mutating func finish(_ ticket: Int, at now: Duration) -> Ended? {
        guard ticket == self.ticket, let work else { return nil }
        defer { (self.work, end) = (nil, nil) }
        return Ended(work: work, wasCancelled: end == nil, duration: now - start)
    }
}
