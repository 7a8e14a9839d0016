/// Who makes room on a full adapter, so that all devices have their turn.
///
/// A device that has waited for a period gets the place of the link that is oldest, and at least a period old. So with
/// one device too many each is away in its turn, for a period. Who has waited longest comes first. When nobody who waited
/// comes, those that wait are out of reach: the next try is later, and ever later.
public struct Rotation: Equatable, Sendable {
    private struct Given: Equatable {
        let device: String
        let time: Duration
    }

    /// How long a place that was given counts as one for those that wait.
    private static let grace = Duration.seconds(60)
    /// How long a free place is kept for those that have waited longest.
    private static let precedence = Duration.seconds(10)
    /// How many times the period doubles.
    private static let mostDoublings = 3

    private var waitingSince: [String: Duration] = [:]
    private var given: [Given] = []
    /// Those for whom the newest places were made.
    private var invited: Set<String> = []
    /// How often in a row the one who made room came back first.
    private var unused = 0

    public init() {}

    /// The links to end now.
    ///
    /// - Parameters:
    ///   - period: How long a turn lasts at least.
    ///   - ready: The links of the adapter, and since when each is ready.
    ///   - waiting: The devices that wait for a place of the adapter; empty unless it is full.
    ///   - wanting: All devices that are to be connected.
    ///   - now: The monotonic time.
    /// - Returns: The devices that make room, the one with the oldest link first.
    public mutating func choose(
        period: Duration,
        ready: [String: Duration],
        waiting: [String],
        wanting: Set<String>,
        now: Duration
    ) -> [String] {
        note(ready: ready, waiting: waiting, wanting: wanting, now: now)
        let turn = turn(period)
        let entitled = waitingSince.filter { waiting.contains($0.key) && now - $0.value >= turn }
        let old = ready.filter { now - $0.value >= turn }.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
        let chosen = old.prefix(max(0, entitled.count - given.count)).map(\.key)
        guard !chosen.isEmpty else { return [] }
        given += chosen.map { Given(device: $0, time: now) }
        let longest = entitled.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
        invited = Set(longest.prefix(given.count).map(\.key))
        return chosen
    }

    /// Since when a device has waited; `nil` when it has not.
    public func waitingSince(_ device: String) -> Duration? { waitingSince[device] }

    /// True while a free place is kept for others.
    public func holdsBack(_ device: String, now: Duration) -> Bool {
        !invited.contains(device) && given.contains { now - $0.time < Self.precedence }
    }

    /// When ``choose(period:ready:waiting:wanting:now:)`` may have something to say without another event.
    public func deadline(period: Duration, ready: [String: Duration], now: Duration) -> Duration? {
        guard !waitingSince.isEmpty || !given.isEmpty else { return nil }
        let turns = (Array(waitingSince.values) + Array(ready.values)).map { $0 + turn(period) }
        let places = given.flatMap { [$0.time + Self.precedence, $0.time + Self.grace] }
        return (turns + places).filter { $0 > now }.min()
    }

    private func turn(_ period: Duration) -> Duration {
        period * (1 << min(unused, Self.mostDoublings))
    }

    private mutating func note(ready: [String: Duration], waiting: [String], wanting: Set<String>, now: Duration) {
        for place in given where ready[place.device].map({ $0 > place.time }) ?? false {
            // Nobody has come for it.
            given.removeAll { $0 == place }
            unused += 1
            for other in waitingSince.keys { waitingSince[other] = now }
        }
        for name in ready.keys where waitingSince.removeValue(forKey: name) != nil { unused = 0 }
        waitingSince = waitingSince.filter { wanting.contains($0.key) }
        given.removeAll { now - $0.time >= Self.grace }
        for name in waiting where waitingSince[name] == nil { waitingSince[name] = now }
    }
}
