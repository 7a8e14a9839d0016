/// Keeps one cause from filling the disk: of entries with the same message and device, or file, the first ten of a minute
/// pass, and one a minute as long as there are more; it says how many others there were.
struct RepeatLimit {
    private struct Key: Hashable {
        let message: String
        /// What it is about: a device, or a file.
        let subject: LogField?
    }

    /// A minute of one cause.
    private struct Window {
        var start: Duration
        var allowance = RepeatLimit.burst
        var written = 0
        /// What was left out, as one entry.
        var suppressed = 0
        var level = LogLevel.info
    }

    private static let burst = 10
    private static let period = Duration.seconds(60)
    private static let capacity = 1000
    private var windows: [Key: Window] = [:]
    /// When the first window ends that has left something out.
    private var due = Duration.seconds(Int64.max / 2)

    /// Decides about one entry at the monotonic time `now`.
    ///
    /// - Returns: What is to be written: the entry unless it is left out, and before it how many entries of other causes
    ///   were left out in minutes that are over.
    mutating func judge(_ entry: LogEntry, at now: Duration) -> [LogEntry] {
        guard entry.level > .debug else { return [entry] }
        let subject = entry.fields.first { ["device", "path"].contains($0.key) }
        let key = Key(message: entry.message, subject: subject)
        let passed = pass(entry, key, now)
        let others = now >= due ? settle(now) : []
        if windows.count > Self.capacity { windows = windows.filter { now - $0.value.start < Self.period } }
        return others + (passed.map { [$0] } ?? [])
    }

    private mutating func pass(_ entry: LogEntry, _ key: Key, _ now: Duration) -> LogEntry? {
        var window = windows[key] ?? Window(start: now)
        defer { windows[key] = window }
        var suppressed = 0
        if now - window.start >= Self.period {
            suppressed = window.suppressed
            let isQuiet = suppressed == 0 && window.written < window.allowance
            window = Window(start: now, allowance: isQuiet ? Self.burst : 1)
        }
        guard window.written < window.allowance else {
            window.suppressed += 1
            window.level = max(window.level, entry.level)
            due = min(due, window.start + Self.period)
            return nil
        }
        window.written += 1
        return entry.standing(for: suppressed)
    }

    /// Tells what was left out by causes that have fallen silent.
    private mutating func settle(_ now: Duration) -> [LogEntry] {
        var entries: [LogEntry] = []
        due = .seconds(Int64.max / 2)
        for (key, window) in windows where window.suppressed > 0 {
            guard now - window.start >= Self.period else {
                due = min(due, window.start + Self.period)
                continue
            }
            windows[key] = nil
            let fields = key.subject.map { [$0] } ?? []
            let entry = LogEntry(level: window.level, message: key.message, fields: fields)
            entries.append(entry.standing(for: window.suppressed))
        }
        return entries
    }
}

extension LogEntry {
    /// The entry, which says that it stands for others that were left out.
    fileprivate func standing(for suppressed: Int) -> LogEntry {
        guard suppressed > 0 else { return self }
        return LogEntry(level: level, message: message, fields: fields + [LogField("suppressed", suppressed)])
    }
}
