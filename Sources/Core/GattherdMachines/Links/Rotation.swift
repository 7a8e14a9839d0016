/// The selection of links that make room on a full adapter, so that all devices take turns.
///
/// A device that has waited for one period replaces the oldest link, if that is at least one period old. With one
/// device too many, each device is offline in turn for one period. The longest waiting device comes first. If no
/// waiting device connects, they are all out of range, and the period grows.
public struct Rotation: Equatable, Sendable {
    private struct FreedSlot: Equatable {
        let device: String
        let time: Duration
    }

    /// The time for which a freed slot counts as reserved for waiting devices.
    private static let grace = Duration.seconds(60)
    /// The time for which a free slot is kept for the longest waiting devices.
    private static let precedence = Duration.seconds(10)
    /// The maximum number of times that the period doubles.
    private static let maximumDoublings = 3

    private var waitingSince: [String: Duration] = [:]
    private var freed: [FreedSlot] = []
    /// Devices for which the newest slots were freed.
    private var invited: Set<String> = []
    /// Consecutive turns in which the device that made room reconnected first.
    private var unused = 0

    public init() {}

    /// Selects the links to end now.
    ///
    /// - Parameters:
    ///   - period: The minimum duration of a turn.
    ///   - ready: The adapter's ready links, and the time each became ready.
    ///   - waiting: The devices that wait for a slot of the adapter, without those for which another adapter has freed
    ///     one; empty unless it is full.
    ///   - wanting: All devices that should be connected.
    ///   - now: The monotonic time.
    /// - Returns: The devices that make room, the one with the oldest link first.
    public mutating func choose(
        period: Duration,
        ready: [String: Duration],
        waiting: [String],
        wanting: Set<String>,
        at now: Duration
    ) -> [String] {
        update(ready: ready, waiting: waiting, wanting: wanting, at: now)
        let turn = turn(period)
        let entitled = waitingSince.filter { waiting.contains($0.key) && now - $0.value >= turn }
        let old = ready.filter { now - $0.value >= turn }.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
        let chosen = old.prefix(max(0, entitled.count - freed.count)).map(\.key)
        guard !chosen.isEmpty else { return [] }
        freed += chosen.map { FreedSlot(device: $0, time: now) }
        let longest = entitled.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
        invited = Set(longest.prefix(freed.count).map(\.key))
        return chosen
    }

    /// Ends the wait of devices that other adapters have connected, and restarts that of the devices `invited` there.
    public mutating func recordElsewhere(ready: Set<String>, invited: Set<String>, at now: Duration) {
        for name in ready where waitingSince.removeValue(forKey: name) != nil { unused = 0 }
        for name in invited where waitingSince[name] != nil { waitingSince[name] = now }
    }

    /// The devices for which slots were freed, while these count as reserved.
    public func invited(at now: Duration) -> Set<String> {
        freed.contains { now - $0.time < Self.grace } ? invited : []
    }

    /// The start of a device's wait; `nil` if it does not wait.
    public func waitingSince(_ device: String) -> Duration? { waitingSince[device] }

    /// True while a free slot is reserved for other devices.
    public func holdsBack(_ device: String, at now: Duration) -> Bool {
        !invited.contains(device) && freed.contains { now - $0.time < Self.precedence }
    }

    /// The time of the next possible ``choose(period:ready:waiting:wanting:at:)`` result without another event.
    public func deadline(period: Duration, ready: [String: Duration], at now: Duration) -> Duration? {
        guard !waitingSince.isEmpty || !freed.isEmpty else { return nil }
        let turns = (Array(waitingSince.values) + Array(ready.values)).map { $0 + turn(period) }
        let slots = freed.flatMap { [$0.time + Self.precedence, $0.time + Self.grace] }
        return (turns + slots).filter { $0 > now }.min()
    }

    private func turn(_ period: Duration) -> Duration {
        period * (1 << min(unused, Self.maximumDoublings))
    }

    private mutating func update(ready: [String: Duration], waiting: [String], wanting: Set<String>, at now: Duration) {
        for slot in freed where ready[slot.device].map({ $0 > slot.time }) ?? false {
            // No waiting device has used the slot.
            freed.removeAll { $0 == slot }
            unused += 1
            for other in waitingSince.keys { waitingSince[other] = now }
        }
        for name in ready.keys where waitingSince.removeValue(forKey: name) != nil { unused = 0 }
        waitingSince = waitingSince.filter { wanting.contains($0.key) }
        freed.removeAll { now - $0.time >= Self.grace }
        for name in waiting where waitingSince[name] == nil { waitingSince[name] = now }
    }
}
