import GattherdModel

/// Separates the notifications of one characteristic from their copies and from values that other clients read.
///
/// bluetoothd signals a notification once for each client with `StartNotify`, one signal right after the other. It
/// signals the value of every read once, right before the reply to the reader. Both look like notifications.
///
/// The serial numbers of its messages tell them apart: they are consecutive over all messages to all clients. Equal
/// signals with consecutive numbers are a run, which ends with the next message. Before an answer bluetoothd sends the
/// property changes of other objects that wait, so these do not show whether the run was answered. A number that is
/// missing after a run was a message to another client. Only such a message can change the number of clients, so that
/// the number holds until the next gap; then the lengths of the next runs show it.
struct NotificationFilter {
    /// A value to deliver.
    struct Delivery: Hashable {
        let octets: [UInt8]
        let time: Timestamp
        /// True if another client may have read the value, and nothing was notified.
        let mayBeRead: Bool
    }

    private struct Run {
        let octets: [UInt8]
        var times: [Timestamp]
        /// The number of gaps before the run.
        let gaps: UInt64
        /// True if a signal of another object came next, so that later signals are other notifications.
        var isComplete = false
        /// True if a message to another client came next.
        var isAnswered = false

        var count: Int { times.count }
        /// True if the length shows how many signals a notification has.
        var isEvidence: Bool { !isAnswered && count > 1 }
    }

    /// The maximum number of signals that are held back.
    private static let limit = 512
    /// The number of runs of equal length that prove the number of copies.
    private static let proof = 3
    /// The lengths at which a single run of equal signals counts as copies, else as equal notifications.
    private static let fewCopies = 2...3
    /// The maximum number of copies of a notification: longer runs are equal notifications.
    private static let maximumCopies = 8

    /// True if other clients can read the characteristic.
    private let isReadable: Bool
    /// The number of signals of a notification, as far as known.
    private(set) var copies = 1
    /// The gap count for which ``copies`` is proven.
    private var provenAt: UInt64?
    private var open: Run?
    private var undecided: [Run] = []

    init(isReadable: Bool) {
        self.isReadable = isReadable
    }

    /// True while signals wait for the next message of bluetoothd.
    var hasOpenRun: Bool { open != nil }
    /// True while the meaning of ended runs depends on later runs.
    var isUndecided: Bool { !undecided.isEmpty }

    /// True if a signal is a notification without further proof.
    func passes(at gaps: UInt64) -> Bool {
        provenAt == gaps && copies == 1 && !isReadable && open == nil && undecided.isEmpty
    }

    /// Records that no other client had notifications when ours were started.
    mutating func startAlone(at gaps: UInt64) {
        (copies, provenAt) = (1, gaps)
    }

    /// Adds a signal.
    ///
    /// - Parameters:
    ///   - octets: The value.
    ///   - time: The time of reception.
    ///   - follows: True if its number is the one after the last message's.
    ///   - gaps: The number of gaps until now.
    /// - Returns: The values that are certain now.
    mutating func receive(_ octets: [UInt8], at time: Timestamp, follows: Bool, gaps: UInt64) -> [Delivery] {
        if follows, let run = open, !run.isComplete, run.octets == octets, run.count < Self.limit {
            open?.times.append(time)
            return []
        }
        defer { open = Run(octets: octets, times: [time], gaps: gaps) }
        return endRun(isAnswered: !follows)
    }

    /// Ends the growth of the open run at another signal; the run waits for the message after that.
    mutating func complete() {
        open?.isComplete = true
    }

    /// Removes the echo of our own read: the last signal, if it is equal to the answer.
    mutating func removeEcho(of octets: [UInt8]) {
        guard let run = open, run.octets == octets else { return }
        if run.count == 1 { open = nil } else { open?.times.removeLast() }
    }

    /// Ends the open run at the next message that shows whether it was answered.
    ///
    /// - Parameter isAnswered: True if a message to another client came in between.
    /// - Returns: The values that are certain now.
    mutating func endRun(isAnswered: Bool) -> [Delivery] {
        guard var run = open.take() else { return [] }
        run.isAnswered = isAnswered && isReadable
        if undecided.isEmpty, explains(run) { return deliveries(of: run, copies) }
        undecided.append(run)
        return decideIfProven()
    }

    /// Decides about all waiting values by the current evidence.
    mutating func flush() -> [Delivery] {
        endRun(isAnswered: false) + decide()
    }

    /// Decides without proof about the runs that wait for it.
    mutating func decide() -> [Delivery] {
        guard let last = undecided.last else { return [] }
        let evidence = undecided.filter(\.isEvidence)
        let divisor = evidence.reduce(0) { Self.divisor($0, $1.count) }
        let most = evidence.count > 1 ? Self.maximumCopies : Self.fewCopies.upperBound
        if divisor > 1, divisor <= most { copies = divisor }
        if !evidence.isEmpty { provenAt = last.gaps }
        return releaseUndecided { _, copies in copies }
    }

    // MARK: - Proof

    /// True if the known number of copies explains the run; a run of one signal is proof by itself.
    private mutating func explains(_ run: Run) -> Bool {
        let isEcho = run.isAnswered && run.count % copies == 1 % copies
        if run.count == 1 {
            if !run.isAnswered { (copies, provenAt) = (1, run.gaps) }
            return true
        }
        if run.count.isMultiple(of: copies), provenAt == run.gaps || copies > 1 {
            if !run.isAnswered { provenAt = run.gaps }
            return true
        }
        return isEcho && copies > 1
    }

    private mutating func decideIfProven() -> [Delivery] {
        guard let last = undecided.last else { return [] }
        if last.count == 1, !last.isAnswered {
            (copies, provenAt) = (1, last.gaps)
            return releaseUndecided { run, copies in
                // Before the last gap there may have been one client more, so a run of two or three is copies.
                run.gaps != last.gaps && Self.fewCopies.contains(run.count) ? run.count : copies
            }
        }
        let evidence = undecided.filter { $0.isEvidence && $0.gaps == last.gaps }
        let isTooMuch = undecided.reduce(0) { $0 + $1.count } > Self.limit
        return evidence.count >= Self.proof || isTooMuch ? decide() : []
    }

    private mutating func releaseUndecided(_ copiesOf: (Run, Int) -> Int) -> [Delivery] {
        defer { undecided.removeAll() }
        return undecided.flatMap { deliveries(of: $0, copiesOf($0, copies)) }
    }

    // MARK: - Deliveries

    /// The notifications of a run.
    ///
    /// A surplus signal is the value of a read if there was an answer, else it is delivered as well.
    private func deliveries(of run: Run, _ copies: Int) -> [Delivery] {
        let surplus = run.count % copies
        let isEcho = run.isAnswered && (copies == 1 || surplus == 1)
        let notified = stride(from: 0, to: run.count - (isEcho ? 1 : 0), by: copies)
        return notified.map { Delivery(octets: run.octets, time: run.times[$0], mayBeRead: false) }
            + (isEcho ? [Delivery(octets: run.octets, time: run.times[run.count - 1], mayBeRead: true)] : [])
    }

    private static func divisor(_ first: Int, _ second: Int) -> Int {
        second == 0 ? first : divisor(second, first % second)
    }
}
