import GattherdSync

/// Writes entries on a thread of its own, so that a reader of the log that stands still holds nobody up: a full pipe, a
/// terminal after Ctrl-S, a journald that hangs.
///
/// Up to ``capacity`` entries wait meanwhile; of more the newest are lost, and it is said how many.
public final class LogWriter: Sendable {
    private struct Queue: Sendable {
        var waiting = 0
        var lost = 0

        /// How many were lost before this one; `nil` when this one is.
        mutating func admit() -> Int? {
            guard waiting < LogWriter.capacity else {
                lost += 1
                return nil
            }
            waiting += 1
            return takeLost()
        }

        /// How many are to be told as lost after the one that was written, which is when none waits.
        mutating func leave() -> Int {
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
    ///   - now: The time as people read it, for example RFC 3339.
    ///   - write: Writes one entry, with the time at which it was made; may block.
    public init(now: @escaping @Sendable () -> String, write: @escaping @Sendable (LogEntry, String) -> Void) {
        (self.now, self.write) = (now, write)
    }

    deinit {
        loop.stop()
    }

    /// Writes `entry` after those before it; does not block.
    public func take(_ entry: LogEntry) {
        guard let before = queue.withLock({ $0.admit() }) else { return }
        let time = now()
        loop.execute { [self] in
            tell(lost: before)
            write(entry, time)
            tell(lost: queue.withLock { $0.leave() })
        }
    }

    private func tell(lost count: Int) {
        if count > 0 { write(.lost(count), now()) }
    }

    /// Waits until what was taken is written, for at most `limit`.
    public func flush(within limit: Duration) async {
        let (written, end) = AsyncStream.makeStream(of: Never.self)
        loop.execute { end.finish() }
        await wait(atMost: limit) { for await _ in written {} }
    }
}

extension LogEntry {
    fileprivate static func lost(_ count: Int) -> LogEntry {
        let fields = [LogField("count", count), LogField("reason", "nobody read the log")]
        return LogEntry(level: .warning, message: "entries of the log were lost", fields: fields)
    }
}
