/// An adapter's link capacity, learned from refused attempts.
///
/// BlueZ does not report the capacity. A full controller fails `Connect` within milliseconds, with the same error as
/// for a vanished peripheral. A limit is assumed after several consecutive attempts of different devices failed at
/// once with the same number of links up. If only one device waits, more refusals are needed. The assumption may be
/// wrong, so one attempt is let through at growing intervals. The first success above the limit cancels the
/// assumption. An adapter without links is never full.
public struct SlotBook: Equatable, Sendable {
    private struct Evidence: Equatable {
        var links = 0
        var refusals = 0
        var devices: Set<String> = []
    }

    /// The refusals required for a limit, by at least so many devices, or by one.
    private static let (refusals, devices, refusalsOfOne) = (6, 2, 8)
    /// Consecutive refusals after which a full adapter is reported as suspected.
    private static let suspicious = 3
    private static let doubts = Backoff(minimum: .seconds(5), maximum: .seconds(600))

    /// The assumed link limit; `nil` while there is no evidence for one.
    public private(set) var limit: Int?
    private var evidence = Evidence()
    /// Failed attempts above the limit since it was assumed.
    private var confirmations = 0
    private var nextProbe = Duration.zero

    public init() {}

    /// The limit that recent refusals suggest, before it is assumed; `nil` without such refusals.
    public var suspectedLimit: Int? {
        limit == nil && evidence.refusals >= Self.suspicious ? evidence.links : nil
    }

    /// Returns true if one more attempt makes sense.
    ///
    /// - Parameters:
    ///   - links: Links that are up, including those of other programs.
    ///   - attempts: Attempts under way.
    ///   - now: The monotonic time.
    /// - Returns: False while the adapter counts as full.
    public func hasRoom(links: Int, attempts: Int, at now: Duration) -> Bool {
        guard let limit, links + attempts >= limit else { return true }
        return attempts == 0 && now >= nextProbe
    }

    /// The time at which one attempt is let through although the adapter counts as full.
    public func probe(links: Int) -> Duration? {
        limit.flatMap { links >= $0 ? nextProbe : nil }
    }

    /// Records a new link; `links` are up including it.
    public mutating func accepted(links: Int) {
        evidence = Evidence()
        guard let limit, links > limit else { return }
        self.limit = nil
        confirmations = 0
    }

    /// Records an attempt that failed at once, without a link even for a moment, while `links` others were up.
    public mutating func refused(_ device: String, links: Int, at now: Duration) {
        guard links > 0 else { return }
        if let limit, links >= limit { return confirm(at: now) }
        if evidence.links != links { evidence = Evidence(links: links) }
        evidence.refusals += 1
        evidence.devices.insert(device)
        let least = evidence.devices.count >= Self.devices ? Self.refusals : Self.refusalsOfOne
        guard evidence.refusals >= least else { return }
        limit = links
        confirmations = 0
        confirm(at: now)
    }

    private mutating func confirm(at now: Duration) {
        nextProbe = now + Self.doubts.ceiling(after: confirmations)
        confirmations += 1
    }
}
