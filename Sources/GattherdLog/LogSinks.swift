import GattherdSync
import Glibc

/// Where entries go, and in which form.
public enum LogForm: Sendable {
    /// For people: time, level, message, fields.
    case text(hasColour: Bool)
    /// For journald: its level prefix, message, fields.
    case journald
    /// One JSON object a line.
    case json

    /// The form that suits where standard error leads to.
    public static var automatic: LogForm {
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
    /// A log on standard error; one `write` a line, so that lines of threads do not mix.
    ///
    /// - Parameters:
    ///   - form: How entries look.
    ///   - threshold: The least level that is written.
    ///   - now: The time as people read it, for example RFC 3339.
    /// - Returns: A log whose repeats are limited: see ``RepeatLimit``.
    public static func standardError(
        _ form: LogForm,
        threshold: LogLevel,
        now: @escaping @Sendable () -> String
    ) -> Log {
        let limit = Locked(RepeatLimit())
        let clock = ContinuousClock()
        let start = clock.now
        return Log(threshold: threshold) { entry in
            let verdict = limit.withLock { $0.judge(entry, at: start.duration(to: clock.now)) }
            guard case .write(let suppressed) = verdict else { return }
            let line = LogLine(form).octets(entry, time: now(), suppressed: suppressed)
            _ = unsafe line.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
        }
    }
}

/// Keeps one cause from filling the disk: of entries with the same message and device, one a minute passes
/// after the first ten, and says how many did not.
struct RepeatLimit {
    enum Verdict: Equatable {
        case write(suppressed: Int)
        case suppress
    }

    private struct Key: Hashable {
        let message: String
        let device: String?
    }

    private struct Window {
        var start: Duration
        var written = 0
        var suppressed = 0
    }

    private static let burst = 10
    private static let period = Duration.seconds(60)
    private static let capacity = 1000
    private var windows: [Key: Window] = [:]

    /// Decides about one entry at the monotonic time `now`.
    mutating func judge(_ entry: LogEntry, at now: Duration) -> Verdict {
        guard entry.level > .debug else { return .write(suppressed: 0) }
        let key = Key(message: entry.message, device: entry.fields.first { $0.key == "device" }?.value)
        if windows.count > Self.capacity { windows = windows.filter { now - $0.value.start < Self.period } }
        var window = windows[key] ?? Window(start: now)
        var suppressed = 0
        if now - window.start >= Self.period {
            suppressed = window.suppressed
            window = Window(start: now)
        }
        window.written += 1
        let isWritten = window.written <= Self.burst
        if !isWritten { window.suppressed += 1 }
        windows[key] = window
        return isWritten ? .write(suppressed: suppressed) : .suppress
    }
}
