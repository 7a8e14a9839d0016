public import GattherdModel

/// A transition of a link from one state to another.
public struct LinkChange: Equatable, Sendable {
    public let from: LinkState
    public let to: LinkState
    public let reason: LinkReason?
    public internal(set) var detail: String?
    public let attempt: Int
    public let retryAfter: Duration?

    /// True if the state is the same and only its details changed.
    public var isWithinState: Bool { from == to }

    public init(
        from: LinkState,
        to: LinkState,
        reason: LinkReason?,
        detail: String?,
        attempt: Int,
        retryAfter: Duration?
    ) {
        self.from = from
        self.to = to
        self.reason = reason
        self.detail = detail
        self.attempt = attempt
        self.retryAfter = retryAfter
    }
}
