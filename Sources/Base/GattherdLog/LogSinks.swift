import GattherdSync
import Glibc

/// The format of log lines.
public enum LogFormat: Sendable {
    /// Time, level, message and fields.
    case text(hasColour: Bool)
    /// The level prefix of journald, message and fields.
    case journald
    /// One JSON object per line.
    case json

    /// The format for standard error: journald, a terminal, or JSON for pipes and files.
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
    /// Returns a log with a ``RepeatLimit``, which passes entries to `write` on any thread.
    ///
    /// - Parameters:
    ///   - threshold: The lowest level that is written.
    ///   - write: Writes an entry; the field `suppressed` counts the entries that were left out before it.
    /// - Returns: The log.
    public static func limited(threshold: LogLevel, write: @escaping @Sendable (LogEntry) -> Void) -> Log {
        let limit = Locked(RepeatLimit())
        let clock = ContinuousClock()
        let start = clock.now
        return Log(threshold: threshold) { entry in
            let entries = limit.withLock { $0.filter(entry, at: start.duration(to: clock.now)) }
            entries.forEach(write)
        }
    }
}

extension LogEntry {
    /// Writes the entry as a line, in one `write`: lines of several programs do not mix.
    public func writeToStandardError(_ form: LogFormat, at time: String) {
        _ = writeAll(LogLine(form).bytes(self, time: time), to: STDERR_FILENO)
    }
}
