import Synchronization

/// How loud an entry is.
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
    /// Octets.
    case trace
    /// One per operation.
    case debug
    /// One per link event.
    case info
    /// A state change of the whole.
    case notice
    /// The daemon acted; a human may wish to know.
    case warning
    /// A human must act.
    case error

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// One datum of an entry: a dotted key and its value.
public struct LogField: Hashable, Sendable {
    public let key: String
    public let value: String
    /// The value is a number: JSON needs no quotes around it.
    let isNumber: Bool

    public init(_ key: StaticString, _ value: some CustomStringConvertible) {
        self.key = "\(key)"
        self.value = value.description
        isNumber = false
    }

    public init(_ key: StaticString, _ value: some BinaryInteger) {
        self.key = "\(key)"
        self.value = value.description
        isNumber = true
    }
}

/// One line of the log, before it has a form.
public struct LogEntry: Hashable, Sendable {
    public let level: LogLevel
    public let message: String
    public let fields: [LogField]

    public init(level: LogLevel, message: String, fields: [LogField]) {
        self.level = level
        self.message = message
        self.fields = fields
    }
}

/// The level from which on entries are written, for all logs that are made of one.
private final class Threshold: Sendable {
    let rank: Atomic<Int>

    init(_ level: LogLevel) {
        rank = Atomic(level.rawValue)
    }
}

/// What a room writes its entries with; handed in, never global.
public struct Log: Sendable {
    private let threshold: Threshold
    private let fields: [LogField]
    private let sink: @Sendable (LogEntry) -> Void

    /// Entries below `threshold` are not even built.
    public init(threshold: LogLevel, sink: @escaping @Sendable (LogEntry) -> Void) {
        self.init(Threshold(threshold), [], sink)
    }

    private init(_ threshold: Threshold, _ fields: [LogField], _ sink: @escaping @Sendable (LogEntry) -> Void) {
        (self.threshold, self.fields, self.sink) = (threshold, fields, sink)
    }

    /// A log that nobody reads.
    public static let silent = Log(threshold: .error) { _ in }

    /// The same log with more fields on every entry, for example one device's name.
    public func with(_ more: LogField...) -> Log {
        Log(threshold, fields + more, sink)
    }

    /// The same log, in which entries that `isMinor` accepts, unless they are errors, have the level `debug`.
    public func demoting(_ isMinor: @escaping @Sendable (LogEntry) -> Bool) -> Log {
        Log(threshold, fields) { [threshold, sink] entry in
            guard entry.level < .error, entry.level > .debug, isMinor(entry) else { return sink(entry) }
            guard LogLevel.debug.rawValue >= threshold.rank.load(ordering: .relaxed) else { return }
            sink(LogEntry(level: .debug, message: entry.message, fields: entry.fields))
        }
    }

    /// Writes entries from `level` on from now on, here and in every log that was made of this one.
    public func setThreshold(_ level: LogLevel) {
        threshold.rank.store(level.rawValue, ordering: .relaxed)
    }

    /// Writes one entry; below the threshold the fields are not even built.
    public func callAsFunction(_ level: LogLevel, _ message: StaticString, _ more: @autoclosure () -> [LogField] = []) {
        guard level.rawValue >= threshold.rank.load(ordering: .relaxed) else { return }
        sink(LogEntry(level: level, message: "\(message)", fields: fields + more()))
    }
}
