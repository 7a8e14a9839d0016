/// What the ends of a peripheral's links say of its bond: BlueZ up to 5.82 does not tell why a link ended.
///
/// Who has lost its bond lets the link come up, cannot encrypt it, and is dropped before its services are known. Who
/// has none and refuses to make one drops the link in the middle of the first request that needs it. Once may be the
/// radio; again and again it is not.
public struct BondWatch: Equatable, Sendable {
    /// What has become of the bond.
    public enum Change: Equatable, Sendable {
        case made
        /// The peripheral does not know it any more.
        case lost
    }

    /// So many ends of the same kind in a row are no accident.
    public static let limit = 3
    /// The same for requests that need no encryption on most links.
    public static let requestLimit = 2
    /// A link that was up for longer had time to be encrypted.
    public static let window = Duration.seconds(2)
    /// A link that ends so soon after a request failed is why it failed, or the other way round.
    public static let moment = Duration.seconds(1)

    /// `nil` until it was observed.
    private var wasPaired: Bool?
    private var upSince: Duration?
    private var isResolved = false
    /// The services were known on the link that ended last: it was encrypted, or needed no encryption.
    private var wasResolved = false
    private var earlyEnds = 0
    /// How many there were when an attempt began, unless it has succeeded.
    private var earlyEndsBefore: Int?
    /// BlueZ said that it was the bond.
    private var isBlamed = false
    private var fruitlessRequests = 0
    private var requestFailedAt: Duration?
    private var endedAt: Duration?
    private var isLossTold = false

    public init() {}

    public var isPaired: Bool { wasPaired ?? false }
    /// True until ``forget()``, or until a link proves the contrary.
    public var hasLostBond: Bool { isPaired && (isBlamed || earlyEndsBefore == nil && earlyEnds >= Self.limit) }
    /// True from the first sign that the bond is lost until a link proves the contrary.
    public var isInDoubt: Bool { isPaired && (isBlamed || earlyEnds > 0) }
    /// True when nothing more should be asked before a pairing has succeeded.
    public var needsPairing: Bool { !isPaired && fruitlessRequests >= Self.requestLimit }

    /// Takes what BlueZ says of the peripheral at the monotonic time `now`.
    public mutating func observe(
        isPaired: Bool,
        isConnected: Bool,
        isResolved: Bool,
        now: Duration
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

    /// The link has ended.
    public mutating func ended(now: Duration) -> Change? {
        defer { (upSince, isResolved, wasResolved) = (nil, false, isResolved) }
        endedAt = now
        weighRequest()
        // What the link has outlived has nothing to do with it.
        if requestFailedAt != nil { (fruitlessRequests, requestFailedAt) = (0, nil) }
        guard let upSince, !isResolved, isPaired, now - upSince <= Self.window else { return nil }
        earlyEnds += 1
        return loss()
    }

    /// We begin to connect.
    ///
    /// When BlueZ says in the end that the link could not be made it may still have seemed to be up for a moment: that
    /// was the radio, and does not count, whenever it is heard of.
    public mutating func attemptBegan() {
        earlyEnds = earlyEndsBefore ?? earlyEnds
        earlyEndsBefore = earlyEnds
        wasResolved = false
    }

    /// BlueZ said that the link is up, whatever became of it since.
    public mutating func attemptSucceeded() -> Change? {
        earlyEndsBefore = nil
        return loss()
    }

    /// BlueZ says that the link could not be encrypted, as it does from 5.83 on.
    public mutating func encryptionFailed() -> Change? {
        isBlamed = isPaired && !wasResolved
        return loss()
    }

    /// Tells the loss of the bond once.
    private mutating func loss() -> Change? {
        defer { isLossTold = hasLostBond }
        return hasLostBond && !isLossTold ? .lost : nil
    }

    /// A request has failed, perhaps because the link has ended or is about to.
    public mutating func requestFailed(now: Duration) {
        requestFailedAt = now
        weighRequest()
    }

    /// Which of the two is heard of first is chance.
    private mutating func weighRequest() {
        guard let failed = requestFailedAt, let ended = endedAt, !isPaired else { return }
        guard max(failed, ended) - min(failed, ended) <= Self.moment else { return }
        fruitlessRequests += 1
        requestFailedAt = nil
    }

    /// A request was answered with a demand for encryption.
    public mutating func requestNeedsPairing() {
        fruitlessRequests = Self.requestLimit
    }

    /// The requests of a session were answered, well or badly; that counts while the link is up.
    public mutating func served() {
        if requestFailedAt == nil, upSince != nil { fruitlessRequests = 0 }
    }

    /// The bond is removed on our side; the peripheral is to pair again.
    public mutating func forget() {
        self = BondWatch()
        fruitlessRequests = Self.requestLimit
    }

    /// What was found has been told: one more sign, in an attempt of ours, is enough to find it again.
    public mutating func doubt() {
        (isLossTold, isBlamed) = (false, false)
        earlyEnds = min(earlyEnds, Self.limit - 1)
        earlyEndsBefore = earlyEnds
        fruitlessRequests = min(fruitlessRequests, Self.requestLimit - 1)
    }
}
