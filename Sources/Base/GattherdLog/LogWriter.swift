import GattherdSync

/// A writer of log entries with a thread of its own: a full pipe, a terminal after Ctrl-S or a hanging journald delays
/// nobody else.
///
/// The queue holds ``capacity`` entries. Newer ones are lost, and their number is written.
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
            return takeLost()
        }

        /// Dequeues an entry.
        ///
        /// Returns the number of lost entries to report after it, if the queue is empty.
        mutating func dequeue() -> Int {
            waiting -= 1
            return waiting == 0 ? takeLost() : 0
        }

        private mutating func takeLost() -> Int {
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
