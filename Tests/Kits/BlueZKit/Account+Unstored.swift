import Foundation

// Readings that were delivered while they could not be stored.
extension Account {
    /// The number of received readings that are marked as not stored.
    public var unstoredCount: Int { Set(unstored.map(\.seq)).count }

    /// The account with the unstored readings added to the stored ones.
    public var includingUnstored: Account {
        var more: [Int: Stored] = [:]
        for reading in unstored {
            let levels = reading.topic.split(separator: "/").map(String.init)
            guard levels.count == 4, let time = Self.microseconds(reading.time) else { continue }
            more[reading.seq] = Stored(
                seq: reading.seq,
                time: time,
                device: levels[2],
                stream: levels[3],
                values: reading.values
            )
        }
        let all = (stored + more.values).sorted { $0.seq < $1.seq }
        return Account(sent: sent, stored: all, rejected: rejected, received: received)
    }

    private var unstored: [Received] { received.filter { !$0.isStored } }

    /// Parses a time to microseconds since 1970.
    private static func microseconds(_ text: String) -> Int? {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return (try? Date(text, strategy: style)).map { Int($0.timeIntervalSince1970 * 1_000_000) }
    }
}
