import GattherdSync
import Glibc

/// Where entries go, and in which form.
public enum LogFormat: Sendable {
    /// For people: time, level, message, fields.
    case text(hasColour: Bool)
    /// For journald: its level prefix, message, fields.
    case journald
    /// One JSON object a line.
    case json

    /// The form that suits where standard error leads to.
    public static var automatic: LogFormat {
        if isJournal { return .journald }
        return isatty(STDERR_FILENO) == 1 ? .text(hasColour: unsafe getenv("NO_COLOR") == nil) : .json
    }

    /// True when systemd connected standard error to the journal (`$JOURNAL_STREAM` is its device and inode).
    private static var isJournal: Bool {
        var status = stat()
        guard let variable = unsafe getenv("JOURNAL_STREAM"), unsafe fstat(STDERR_FILENO, &status) == 0 else {
            return false
        }
        return unsafe String(cString: variable) == "\(status.st_dev):\(status.st_ino)"
    }
}

extension Log {
    /// A log that hands its entries to `write`, from any thread, without those that only repeat others.
    ///
    /// - Parameters:
    ///   - threshold: The least level that is written.
    ///   - write: Takes entries; one that stands for others says so in its field `suppressed`.
    /// - Returns: A log whose repeats are limited: see ``RepeatLimit``.
    public static func limited(threshold: LogLevel, write: @escaping @Sendable (LogEntry) -> Void) -> Log {
        let limit = Locked(RepeatLimit())
        let clock = ContinuousClock()
        let start = clock.now
        return Log(threshold: threshold) { entry in
            let entries = limit.withLock { $0.judge(entry, at: start.duration(to: clock.now)) }
            entries.forEach(write)
        }
    }
}

extension LogEntry {
    /// One line, in one `write`, so that it does not mix with those of other programs.
    public func writeToStandardError(_ form: LogFormat, at time: String) {
        _ = writeAll(LogLine(form).octets(self, time: time), to: STDERR_FILENO)
    }
}
