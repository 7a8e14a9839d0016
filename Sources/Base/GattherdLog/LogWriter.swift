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

    /// True when systemd connected standard error to journald (`$JOURNAL_STREAM` is its device and inode).
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

/// A writer of log entries with a thread of its own: a full pipe, a terminal after Ctrl-S or a hanging journald delays
/// no other thread.
///
/// The queue holds ``capacity`` entries. Further entries are dropped, and their number is logged.
public final class LogWriter: Sendable {
    private struct Queue: Sendable {
        var waiting = 0
        var lost = 0

        /// Enqueues an entry.
        ///
        /// Returns the number of entries lost before it; `nil` if this one is lost.
        mutating func enqueue() -> Int? {
            guard waiting < LogWriter.capacity else {
                lost += 1
                return nil
            }
            waiting += 1
            return removeLost()
        }

        /// Dequeues an entry.
        ///
        /// Returns the number of lost entries to report after it, if the queue is empty.
        mutating func dequeue() -> Int {
            waiting -= 1
            return waiting == 0 ? removeLost() : 0
        }

        private mutating func removeLost() -> Int {
            defer { lost = 0 }
            return lost
        }
    }

    static let capacity = 4096

    private let queue = Locked(Queue())
    private let loop = EventLoop(name: "log")
    private let now: @Sendable () -> String
    private let write: @Sendable (LogEntry, _ time: String) -> Void

    /// - Parameters:
    ///   - now: Returns the time as text, for example in RFC 3339.
    ///   - write: Writes an entry with its time; may block.
    public init(now: @escaping @Sendable () -> String, write: @escaping @Sendable (LogEntry, String) -> Void) {
        (self.now, self.write) = (now, write)
    }

    deinit {
        loop.stop()
    }

    /// Enqueues `entry`; does not block.
    public func enqueue(_ entry: LogEntry) {
        guard let before = queue.withLock({ $0.enqueue() }) else { return }
        let time = now()
        loop.execute { [self] in
            report(lost: before)
            write(entry, time)
            report(lost: queue.withLock { $0.dequeue() })
        }
    }

    private func report(lost count: Int) {
        if count > 0 { write(.lost(count), now()) }
    }

    /// Waits until all enqueued entries are written, for at most `limit`.
    public func flush(within limit: Duration) async {
        let (written, end) = AsyncStream.makeStream(of: Never.self)
        loop.execute { end.finish() }
        await wait(atMost: limit) { for await _ in written {} }
    }
}

extension LogEntry {
    fileprivate static func lost(_ count: Int) -> LogEntry {
        let fields = [LogField("count", count), LogField("reason", "the log could not be written in time")]
        return LogEntry(level: .warning, message: "log entries lost", fields: fields)
    }
}
