/// The keepalive timer, which decides when to ping a connection and when it is dead.
///
/// Time is passed in.
struct Keepalive {
    enum Verdict: Hashable {
        case alive
        /// PINGREQ has to be sent.
        case ping
        /// No PINGREQ was answered in time.
        case silent
        /// The broker reads none of the waiting bytes.
        case stalled
    }

    /// The longest silence of either side before a ping; the broker may shorten it.
    var interval: Duration
    /// The shortest wait for PINGRESP, and for a broker that reads nothing.
    private let minimumTimeout: Duration
    private var lastSent: Duration
    private var lastReceived: Duration
    /// The time of the first PINGREQ since the last PINGRESP.
    private var pingedAt: Duration?

    init(interval: Duration, timeout: Duration, at now: Duration) {
        self.interval = interval
        minimumTimeout = timeout
        lastSent = now
        lastReceived = now
    }

    /// The wait for PINGRESP, and for a broker that reads nothing.
    var timeout: Duration { max(interval, minimumTimeout) }

    mutating func sent(at now: Duration) {
        lastSent = now
    }

    mutating func received(at now: Duration) {
        lastReceived = now
    }

    mutating func pinged(at now: Duration) {
        pingedAt = pingedAt ?? now
    }

    /// Records that PINGRESP arrived.
    mutating func answered() {
        pingedAt = nil
    }

    /// The earliest time at which ``verdict(isClear:at:)`` can differ from alive.
    ///
    /// An interval that is shorter than the wait for PINGRESP ends first: the broker must hear from the client again.
    ///
    /// - Parameter isClear: True if nothing waits to be sent. A broker that reads waiting bytes is alive, and a ping
    /// would come last.
    /// - Returns: The earliest time of another verdict.
    func deadline(isClear: Bool) -> Duration {
        guard isClear else { return lastSent + timeout }
        return pingedAt.map { min($0 + timeout, lastSent + interval) } ?? min(lastSent, lastReceived) + interval
    }

    func verdict(isClear: Bool, at now: Duration) -> Verdict {
        guard now >= deadline(isClear: isClear) else { return .alive }
        guard isClear else { return .stalled }
        return pingedAt.map { now >= $0 + timeout } == true ? .silent : .ping
    }
}
