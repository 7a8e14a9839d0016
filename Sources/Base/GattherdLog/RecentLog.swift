import GattherdSync

/// The newest entries of a log, for people without access to journald.
///
/// Its size is bounded in entries and in bytes; new entries replace the oldest.
public final class RecentLog: Sendable {
    public struct Record: Hashable, Sendable {
        /// The time as text.
        public let time: String
        public let entry: LogEntry

        /// The bytes of its texts.
        fileprivate var size: Int {
            entry.fields.reduce(time.utf8.count + entry.message.utf8.count) { sum, field in
                sum + field.key.utf8.count + field.value.utf8.count
            }
        }
    }

    private struct State: Sendable {
        var records: [Record] = []
        var size = 0
    }

    /// The longest text of a field that is kept, in bytes.
    private static let longestField = 1000

    private let capacity: Int
    private let byteLimit: Int
    private let now: @Sendable () -> String
    private let state = Locked(State())

    /// - Parameters:
    ///   - capacity: The maximum number of entries.
    ///   - byteLimit: The maximum number of bytes of all texts.
    ///   - now: Returns the time as text.
    public init(capacity: Int = 1000, byteLimit: Int = 262_144, now: @escaping @Sendable () -> String) {
        (self.capacity, self.byteLimit, self.now) = (capacity, byteLimit, now)
    }

    public func append(_ entry: LogEntry) {
        let record = Record(time: now(), entry: entry.shortened(to: Self.longestField))
        state.withLock { state in
            state.records.append(record)
            state.size += record.size
            guard state.records.count > capacity || state.size > byteLimit else { return }
            // Many at once, so that each removal costs little.
            let count = state.records.count / 8 + 1
            state.size -= state.records.prefix(count).reduce(0) { $0 + $1.size }
            state.records.removeFirst(count)
        }
    }

    /// Finds the newest entries that fit.
    ///
    /// - Parameters:
    ///   - level: The lowest level.
    ///   - device: The value of the field `device`; `nil` for all entries.
    ///   - limit: The maximum number of entries.
    /// - Returns: The entries, oldest first.
    public func records(from level: LogLevel, device: String?, limit: Int) -> [Record] {
        let all = state.withLock(\.records)
        let fitting = all.filter { record in
            record.entry.level >= level
                && (device == nil || record.entry.fields.contains { $0.key == "device" && $0.value == device })
        }
        return fitting.suffix(limit)
    }
}

extension LogEntry {
    fileprivate func shortened(to limit: Int) -> LogEntry {
        guard fields.contains(where: { $0.value.utf8.count > limit }) else { return self }
        return LogEntry(level: level, message: message, fields: fields.map { $0.shortened(to: limit) })
    }
}
