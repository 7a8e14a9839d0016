/// Notifications that the host has received and not yet delivered to clients.
///
/// Lost when the link ends.
struct HostBuffer: Sendable {
    struct Entry: Hashable, Sendable {
        let id: UInt64
        /// The characteristic's index in the scenario.
        let characteristic: Int
        let record: NotificationRecord
    }

    /// The time from the receipt of a notification to its delivery.
    static let delay = Duration.milliseconds(20)

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    /// Appends an entry.
    ///
    /// Returns the oldest entries beyond `limit`, which are removed.
    mutating func append(_ entry: Entry, limit: Int) -> [Entry] {
        entries.append(entry)
        return removeFirst(max(0, entries.count - limit))
    }

    /// Removes and returns the entries up to the number `id`.
    mutating func remove(through id: UInt64) -> [Entry] {
        removeFirst(entries.count { $0.id <= id })
    }

    mutating func removeAll() -> [Entry] {
        removeFirst(entries.count)
    }

    private mutating func removeFirst(_ count: Int) -> [Entry] {
        defer { entries.removeFirst(count) }
        return Array(entries.prefix(count))
    }
}
