/// How many links an adapter can hold, learned from what it refuses.
///
/// BlueZ does not say it, and a full controller fails `Connect` within milliseconds in the words that it has for a
/// peripheral that goes away. So the limit is believed when several attempts of different devices failed at once, in a
/// row, with the same number of links up; or some more of one device, when no other one waits. What is believed may be wrong: now and then one attempt is let through, and
/// the first that succeeds above the limit ends the belief. An adapter without links is never full.
public struct SlotBook: Equatable, Sendable {
    private struct Evidence: Equatable {
        var links = 0
        var refusals = 0
        var devices: Set<String> = []
    }

    /// How sure to be, and how often to doubt.
    private static let (refusals, devices, refusalsOfOne) = (6, 2, 8)
    /// Refusals in a row after which people are told what the adapter may be.
    private static let suspicious = 3
    private static let doubts = Backoff(minimum: .seconds(5), maximum: .seconds(600))

    /// The most links that the adapter holds; `nil` while nothing speaks for a limit.
    public private(set) var limit: Int?
    private var evidence = Evidence()
    /// How often an attempt above the limit has failed.
    private var confirmations = 0
    private var nextProbe = Duration.zero

    public init() {}

    /// The limit that recent refusals speak for, before it is believed; `nil` without such refusals.
    public var suspectedLimit: Int? {
        limit == nil && evidence.refusals >= Self.suspicious ? evidence.links : nil
    }

    /// True when one more attempt makes sense.
    ///
    /// - Parameters:
    ///   - links: Links that are up, other programs' included.
    ///   - attempts: Attempts under way.
    ///   - now: The monotonic time.
    /// - Returns: False while the adapter counts as full.
    public func hasRoom(links: Int, attempts: Int, now: Duration) -> Bool {
        guard let limit, links + attempts >= limit else { return true }
        return attempts == 0 && now >= nextProbe
    }

    /// When one more attempt will be let through although the adapter counts as full.
    public func probe(links: Int) -> Duration? {
        limit.flatMap { links >= $0 ? nextProbe : nil }
    }

    /// A link was made, and `links` are up with it.
    public mutating func accepted(links: Int) {
        evidence = Evidence()
        guard let limit, links > limit else { return }
        self.limit = nil
        confirmations = 0
    }

    /// An attempt failed at once, without a link for even a moment, while `links` others were up.
    public mutating func refused(_ device: String, links: Int, now: Duration) {
        guard links > 0 else { return }
        if let limit, links >= limit { return confirm(now: now) }
        if evidence.links != links { evidence = Evidence(links: links) }
        evidence.refusals += 1
        evidence.devices.insert(device)
        let least = evidence.devices.count >= Self.devices ? Self.refusals : Self.refusalsOfOne
        guard evidence.refusals >= least else { return }
        limit = links
        confirmations = 0
        confirm(now: now)
    }

    private mutating func confirm(now: Duration) {
        nextProbe = now + Self.doubts.ceiling(after: confirmations)
        confirmations += 1
    }
}
