/// A limit on repeated log entries, so that one cause cannot fill the disk.
///
/// Of entries with the same message and the same device or file, ten pass in the first minute. After that, one per
/// minute passes, with the number of suppressed entries, until a minute is quiet.
struct RepeatLimit {
    private struct Key: Hashable {
        let message: String
        /// The device or file of the entry.
        let subject: LogField?
    }

    /// One minute of one cause.
    private struct Window {
        var start: Duration
        var allowance = RepeatLimit.burst
        var written = 0
        /// The number of suppressed entries, their highest level and the fields of the last one.
        var suppressed = 0
        var level = LogLevel.info
        var fields: [LogField] = []
    }

    private static let burst = 10
    private static let period = Duration.seconds(60)
    private static let capacity = 1000
    private var windows: [Key: Window] = [:]
    /// The end of the first window with suppressed entries.
    private var due = Duration.seconds(Int64.max / 2)

    /// Filters an entry at the monotonic time `now`.
    ///
    /// - Returns: The entries to write: reports about suppressed entries of other causes, then this entry if it passes.
    mutating func filter(_ entry: LogEntry, at now: Duration) -> [LogEntry] {
        guard entry.level > .debug else { return [entry] }
        let subject = entry.fields.first { ["device", "path"].contains($0.key) }
        let key = Key(message: entry.message, subject: subject)
        let passed = pass(entry, key, now)
        let others = now >= due ? closeWindows(now) : []
        if windows.count > Self.capacity { windows = windows.filter { now - $0.value.start < Self.period } }
        return others + (passed.map { [$0] } ?? [])
    }

    private mutating func pass(_ entry: LogEntry, _ key: Key, _ now: Duration) -> LogEntry? {
        var window = windows[key] ?? Window(start: now)
        defer { windows[key] = window }
        var suppressed = 0
        if now - window.start >= Self.period {
            suppressed = window.suppressed
            let isQuiet = suppressed == 0 && window.written < max(1, window.allowance)
            window = Window(start: now, allowance: isQuiet ? Self.burst : 1)
        }
        guard window.written < window.allowance else {
            window.suppressed += 1
            window.level = max(window.level, entry.level)
            window.fields = entry.fields
            due = min(due, window.start + Self.period)
            return nil
        }
        window.written += 1
        return entry.reporting(suppressed)
    }

    /// Returns reports about the suppressed entries of windows that are over.
    ///
    /// A report is the only entry of its cause in the next minute, unless it follows a quiet minute.
    private mutating func closeWindows(_ now: Duration) -> [LogEntry] {
        var entries: [LogEntry] = []
        due = .seconds(Int64.max / 2)
        for (key, window) in windows where window.suppressed > 0 {
            guard now - window.start >= Self.period else {
                due = min(due, window.start + Self.period)
                continue
            }
            let isQuiet = now - window.start >= Self.period * 2
            windows[key] = isQuiet ? nil : Window(start: now, allowance: 0)
            let entry = LogEntry(level: window.level, message: key.message, fields: window.fields)
            entries.append(entry.reporting(window.suppressed))
        }
        return entries
    }
}

extension LogEntry {
    /// Returns the entry with the number of suppressed entries.
    fileprivate func reporting(_ suppressed: Int) -> LogEntry {
        guard suppressed > 0 else { return self }
        return LogEntry(level: level, message: message, fields: fields + [LogField("suppressed", suppressed)])
    }
}
