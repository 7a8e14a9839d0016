import Synchronization

/// The severity of a log entry.
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
    /// Payloads and packets.
    case trace
    /// One entry per operation.
    case debug
    /// One entry per link event.
    case info
    /// A state change of the whole gateway.
    case notice
    /// A problem that the daemon handled.
    case warning
    /// A problem that the user must solve.
    case error

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A field of a log entry: key and value.
public struct LogField: Hashable, Sendable {
    public let key: String
    public let value: String
    /// True for a number, which JSON writes without quotes.
    let isNumber: Bool

    public init(_ key: StaticString, _ value: some CustomStringConvertible) {
        self.key = "\(key)"
        self.value = value.description
        isNumber = false
    }

    /// Writes a duration to the millisecond.
    public init(_ key: StaticString, _ value: Duration) {
        self.init(key, Duration.milliseconds(Int64(max(-1e15, min(value / .milliseconds(1), 1e15)))).description)
    }

    public init(_ key: StaticString, _ value: some BinaryInteger) {
        self.key = "\(key)"
        self.value = value.description
        isNumber = true
    }

    private init(key: String, value: String) {
        (self.key, self.value, isNumber) = (key, value, false)
    }

    /// Returns the field with the first characters of its value, up to `limit`.
    func shortened(to limit: Int) -> LogField {
        value.utf8.count > limit ? LogField(key: key, value: value.prefix(limit / 4) + "…") : self
    }
}

/// A log entry, independent of its format.
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

/// The lowest level that is written, shared by all derived logs.
private final class Threshold: Sendable {
    let rank: Atomic<Int>

    init(_ level: LogLevel) {
        rank = Atomic(level.rawValue)
    }
}

/// A log for people.
///
/// Passed as a parameter, never global.
public struct Log: Sendable {
    private let threshold: Threshold
    private let fields: [LogField]
    private let sink: @Sendable (LogEntry) -> Void

    /// Creates a log that drops entries below `threshold` and passes others to `sink`.
    public init(threshold: LogLevel, sink: @escaping @Sendable (LogEntry) -> Void) {
        self.init(Threshold(threshold), [], sink)
    }

    private init(_ threshold: Threshold, _ fields: [LogField], _ sink: @escaping @Sendable (LogEntry) -> Void) {
        (self.threshold, self.fields, self.sink) = (threshold, fields, sink)
    }

    /// A log without output.
    public static let silent = Log(threshold: .error) { _ in }

    /// Returns a log that adds fields to each entry, for example the name of a device.
    public func with(_ more: LogField...) -> Log {
        Log(threshold, fields + more, sink)
    }

    /// Returns a log that lowers the entries accepted by `isMinor` to `debug`, except errors.
    public func demoting(_ isMinor: @escaping @Sendable (LogEntry) -> Bool) -> Log {
        Log(threshold, fields) { [threshold, sink] entry in
            guard entry.level < .error, entry.level > .debug, isMinor(entry) else { return sink(entry) }
            guard LogLevel.debug.rawValue >= threshold.rank.load(ordering: .relaxed) else { return }
            sink(LogEntry(level: .debug, message: entry.message, fields: entry.fields))
        }
    }

    /// Sets the lowest level that is written, for this log and all derived ones.
    public func setThreshold(_ level: LogLevel) {
        threshold.rank.store(level.rawValue, ordering: .relaxed)
    }

    /// Returns true if entries of a level are written.
    public func includes(_ level: LogLevel) -> Bool {
        level.rawValue >= threshold.rank.load(ordering: .relaxed)
    }

    /// Writes an entry.
    ///
    /// The fields of an entry below the threshold are not evaluated.
    public func callAsFunction(_ level: LogLevel, _ message: StaticString, _ more: @autoclosure () -> [LogField] = []) {
        guard includes(level) else { return }
        sink(LogEntry(level: level, message: "\(message)", fields: fields + more()))
    }
}
