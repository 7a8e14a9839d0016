/// A gateway's bid for a device: its qualification, and the strength of the device's signal there.
public struct LeaseBid: Hashable, Sendable {
    /// The state of a device at a gateway.
    public enum Standing: String, CaseIterable, Hashable, Sendable {
        /// The gateway holds a link.
        case linked
        /// A person at the gateway has disconnected the device.
        case held
        /// Heard often enough that its signal strength may be compared.
        case steady
        /// Heard less often, or not yet heard again after its link or its lease began or ended.
        case heard
        /// Not heard for 1.5 times the ``SmoothedSignal/window``.
        case silent
        /// Not heard for 2.5 times the ``SmoothedSignal/window``.
        case gone
    }

    public var gateway: String
    public var standing: Standing
    /// The smoothed signal strength in dBm, if the device was heard lately.
    public var rssi: Int?
    /// The reason why the gateway may not own the device; `nil` if it may.
    public var problem: String?

    public init(gateway: String, standing: Standing, rssi: Int? = nil, problem: String? = nil) {
        (self.gateway, self.standing, self.rssi, self.problem) = (gateway, standing, rssi, problem)
    }

    /// True if the gateway may own the device and hears it.
    var isAudible: Bool {
        guard problem == nil else { return false }
        return standing == .linked || standing == .steady || standing == .heard
    }

    /// The bid in words: `east has the link`, `east hears it with -61 dBm`.
    public var words: String {
        if let problem { return "\(gateway) cannot own it: \(problem)" }
        let level = rssi.map { " with \($0) dBm" } ?? ""
        return switch standing {
        case .linked: "\(gateway) has the link"
        case .held: "\(gateway) keeps it disconnected, as a person asked"
        case .steady, .heard: "\(gateway) hears it\(level)"
        case .silent: "\(gateway) has not heard it lately"
        case .gone: "\(gateway) does not hear it"
        }
    }
}

/// The cause of a hand-over.
public enum LeaseCause: String, CaseIterable, Hashable, Sendable {
    /// Another gateway hears the device much better.
    case stronger
    /// The owner does not hear the device.
    case silent
    /// The owner may not connect the device, for example because its adapters are full.
    case unable
    /// Another gateway has the link.
    case linked
    /// The configuration or the centre reserves the device for other gateways.
    case excluded
    /// The owner did not renew the lease in time.
    case expired
}

/// The choice of a device's owner among bids: a pure function, equal at each gateway.
///
/// Constraints come first, then signal strength. An owner that has the link, or hears the device, needs a much stronger
/// challenger, so that noise and passing bodies do not hand devices over.
public struct LeaseElection: Hashable, Sendable {
    /// The dB by which a challenger must be stronger than the owner.
    public static let challengerMargin = 16
    /// The dB by which the previous owner must be stronger to come back.
    public static let returnMargin = 6
    /// The dB by which a challenger must be stronger than an owner that did not get its lost link back in time.
    public static let lossMargin = 3

    /// The time since an owner has lost its link, in which the strongest gateway may make the next one.
    public enum LinkLoss: Hashable, Sendable {
        case recent
        /// The owner should have its link back by now.
        case late

        fileprivate var margin: Int { self == .recent ? returnMargin : lossMargin }
    }

    /// The gateway that should own the device; `nil` if none hears it.
    public let winner: String?
    /// The reason in words.
    public let reason: String
    /// The cause of a hand-over; `nil` if the owner stays, or there is none.
    public let cause: LeaseCause?

    /// Chooses the owner.
    ///
    /// - Parameters:
    ///   - bids: At most one bid for each gateway.
    ///   - owner: The gateway that has the lease; `nil` if it is free.
    ///   - previous: The owner before.
    ///   - loss: The owner's loss of its link, if it has lost it.
    public init(_ bids: [LeaseBid], owner: String?, previous: String? = nil, loss: LinkLoss? = nil) {
        let challenger = Self.strongest(of: bids.filter { $0.gateway != owner && $0.isAudible })
        guard let owner else {
            self.init(challenger?.gateway, challenger.map { "\($0.words); the lease is free" } ?? "no gateway hears it")
            return
        }
        let own = bids.first { $0.gateway == owner } ?? LeaseBid(gateway: owner, standing: .gone)
        let isReturn = challenger != nil && challenger?.gateway == previous
        let margin = isReturn ? Self.returnMargin : Self.challengerMargin
        self = Self.election(own, challenger, margin: loss?.margin ?? margin, loss: loss)
    }

    private init(_ winner: String?, _ reason: String, _ cause: LeaseCause? = nil) {
        (self.winner, self.reason, self.cause) = (winner, reason, cause)
    }

    private static func election(
        _ own: LeaseBid,
        _ challenger: LeaseBid?,
        margin: Int,
        loss: LinkLoss?
    ) -> LeaseElection {
        let keeps = LeaseElection(own.gateway, own.words)
        guard own.problem == nil, own.standing != .gone else {
            let cause: LeaseCause = own.problem == nil ? .silent : .unable
            guard let challenger else {
                return cause == .silent ? LeaseElection(nil, "no gateway hears it", cause) : keeps
            }
            return LeaseElection(challenger.gateway, "\(own.words); \(challenger.words)", cause)
        }
        guard let challenger else { return keeps }
        switch own.standing {
        case .held: return keeps
        case .silent: return LeaseElection(challenger.gateway, "\(own.words); \(challenger.words)", .silent)
        case .linked: break
        case .heard, .steady, .gone:
            if challenger.standing == .linked { return LeaseElection(challenger.gateway, challenger.words, .linked) }
        }
        // The challenger has heard several advertisements since the loss, and the owner none.
        if loss != nil, own.rssi == nil, challenger.standing == .steady {
            return LeaseElection(challenger.gateway, "\(own.gateway) has lost the link; \(challenger.words)", .silent)
        }
        return compared(own, challenger, margin: margin)
    }

    private static func compared(_ own: LeaseBid, _ challenger: LeaseBid, margin: Int) -> LeaseElection {
        guard let ours = own.rssi, let theirs = challenger.rssi, challenger.standing == .steady else {
            return LeaseElection(own.gateway, own.words)
        }
        let words = "\(own.words); \(challenger.words)"
        guard theirs - ours >= margin else {
            return LeaseElection(own.gateway, "\(words), which would have to be \(margin) dB stronger")
        }
        return LeaseElection(challenger.gateway, "\(words), at least \(margin) dB stronger", .stronger)
    }

    /// The bid with the link, or with the strongest signal; of equal ones, the gateway first in the alphabet.
    private static func strongest(of bids: [LeaseBid]) -> LeaseBid? {
        bids.max { left, right in
            if (left.standing == .linked) != (right.standing == .linked) { return right.standing == .linked }
            let (weak, strong) = (left.rssi ?? -128, right.rssi ?? -128)
            return weak == strong ? left.gateway > right.gateway : weak < strong
        }
    }
}
