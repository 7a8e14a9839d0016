/// A detector of lost bonds, from the way links end: BlueZ up to 5.82 does not report the reason.
///
/// A peripheral that has lost its bond accepts the link and cannot encrypt it. The link drops before its services are
/// known. A peripheral without a bond that refuses pairing drops the link during the first request that needs
/// encryption. One such end may be radio trouble; several in a row are not.
public struct BondWatch: Equatable, Sendable {
    /// A change of the bond.
    public enum Change: Equatable, Sendable {
        case made
        /// The peripheral no longer knows the bond.
        case lost
    }

    /// The number of consecutive early ends that proves a lost bond.
    public static let limit = 3
    /// The number of failed requests in a row that prove it; most links need no encryption for them.
    public static let requestLimit = 2
    /// The time within which an early end counts; a link that lasts longer could have been encrypted.
    public static let window = Duration.seconds(2)
    /// The maximum time between a failed request and the end of the link that count as related.
    public static let moment = Duration.seconds(1)

    /// The last known pairing state; `nil` until observed.
    private var wasPaired: Bool?
    private var upSince: Duration?
    private var isResolved = false
    /// True if the services were known on the last link: it was encrypted, or needed no encryption.
    private var wasResolved = false
    private var earlyEnds = 0
    /// The number of early ends before the current attempt; `nil` after the attempt succeeded.
    private var earlyEndsBefore: Int?
    /// True if BlueZ named the bond as the cause.
    private var isBlamed = false
    private var fruitlessRequests = 0
    private var requestFailedAt: Duration?
    private var endedAt: Duration?
    private var isLossPublished = false

    public init() {}

    public var isPaired: Bool { wasPaired ?? false }
    /// True until ``forget()``, or until a link disproves the loss.
    public var hasLostBond: Bool { isPaired && (isBlamed || earlyEndsBefore == nil && earlyEnds >= Self.limit) }
    /// True from the first sign of a lost bond until a link disproves it.
    public var isInDoubt: Bool { isPaired && (isBlamed || earlyEnds > 0) }
    /// True if no more requests should be sent before a pairing succeeds.
    public var needsPairing: Bool { !isPaired && fruitlessRequests >= Self.requestLimit }

    /// Records BlueZ's view of the peripheral at the monotonic time `now`.
    public mutating func observe(
        isPaired: Bool,
        isConnected: Bool,
        isResolved: Bool,
        at now: Duration
    ) -> Change? {
        let isMade = wasPaired == false && isPaired
        wasPaired = isPaired
        if isConnected { upSince = upSince ?? now }
        self.isResolved = isConnected && isResolved
        if self.isResolved || isMade {
            (earlyEnds, earlyEndsBefore, isBlamed) = (0, earlyEndsBefore.map { _ in 0 }, false)
        }
        return isMade ? .made : loss()
    }

    /// Records the end of the link.
    public mutating func ended(at now: Duration) -> Change? {
        defer { (upSince, isResolved, wasResolved) = (nil, false, isResolved) }
        endedAt = now
        matchRequestWithEnd()
        // The link outlived the failed request, so the two are unrelated.
        if requestFailedAt != nil { (fruitlessRequests, requestFailedAt) = (0, nil) }
        guard let upSince, !isResolved, isPaired, now - upSince <= Self.window else { return nil }
        earlyEnds += 1
        return loss()
    }

    /// Records the start of a connection attempt.
    ///
    /// If BlueZ finally reports a failed attempt, the link may still have seemed up for a moment. That was radio
    /// trouble and does not count, in whichever order the events arrive.
    public mutating func attemptBegan() {
        earlyEnds = earlyEndsBefore ?? earlyEnds
        earlyEndsBefore = earlyEnds
        wasResolved = false
    }

    /// Records that BlueZ reported the attempt as successful, even if the link has ended since.
    public mutating func attemptSucceeded() -> Change? {
        earlyEndsBefore = nil
        return loss()
    }

    /// Records that BlueZ reported failed encryption, as it does since 5.83.
    public mutating func encryptionFailed() -> Change? {
        isBlamed = isPaired && !wasResolved
        return loss()
    }

    /// Returns the loss of the bond, once.
    private mutating func loss() -> Change? {
        defer { isLossPublished = hasLostBond }
        return hasLostBond && !isLossPublished ? .lost : nil
    }

    /// Records a failed request; the link may have ended, or may be about to.
    public mutating func requestFailed(at now: Duration) {
        requestFailedAt = now
        matchRequestWithEnd()
    }

    /// Pairs a failed request with the end of a link; the two arrive in any order.
    private mutating func matchRequestWithEnd() {
        guard let failed = requestFailedAt, let ended = endedAt, !isPaired else { return }
        guard max(failed, ended) - min(failed, ended) <= Self.moment else { return }
        fruitlessRequests += 1
        requestFailedAt = nil
    }

    /// Records that a request was answered with a demand for encryption.
    public mutating func requestNeedsPairing() {
        fruitlessRequests = Self.requestLimit
    }

    /// Records that all requests of a session were answered, with or without error, while the link was up.
    public mutating func requestsAnswered() {
        if requestFailedAt == nil, upSince != nil { fruitlessRequests = 0 }
    }

    /// Records the removal of the local bond; the peripheral must pair again.
    public mutating func bondRemoved() {
        self = BondWatch()
        fruitlessRequests = Self.requestLimit
    }

    /// Arms the watch again after a published loss: one more sign in an attempt repeats the finding.
    public mutating func rearm() {
        (isLossPublished, isBlamed) = (false, false)
        earlyEnds = min(earlyEnds, Self.limit - 1)
        earlyEndsBefore = earlyEnds
        fruitlessRequests = min(fruitlessRequests, Self.requestLimit - 1)
    }
}
