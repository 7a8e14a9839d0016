import CLinux
import GattherdSync
import Glibc

/// Signals as a stream.
///
/// The handler only writes to a pipe.
public enum ProcessSignals {
    /// Catches signals until the stream ends, which restores their default actions.
    ///
    /// Use one stream at a time.
    ///
    /// - Parameters:
    ///   - numbers: The signals to catch.
    ///   - terminating: Signals that request termination. The second of them ends the process at once, with exit code
    ///     128 + its number.
    /// - Returns: The numbers of the caught signals.
    public static func stream(of numbers: Int32..., terminating: Set<Int32> = []) -> AsyncStream<Int32> {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingNewest(16))
        continuation.onTermination = { _ in for number in numbers { signal(number, SIG_DFL) } }
        let isEnding = Locked(false)
        let isCaught = handle(numbers) { number in
            if terminating.contains(number) {
                let isSecond = isEnding.withLock { isEnding in
                    defer { isEnding = true }
                    return isEnding
                }
                if isSecond { _exit(128 + number) }
            }
            continuation.yield(number)
        }
        if !isCaught { continuation.finish() }
        return stream
    }

    /// Runs `body` when one of the signals arrives, then ends the process with exit code 128 + its number.
    ///
    /// `body` runs on its own thread, also while all others are busy.
    package static func end(on numbers: Int32..., after body: @escaping @Sendable () -> Void) {
        _ = handle(numbers) { number in
            body()
            _exit(128 + number)
        }
    }

    /// Calls `body` on a thread of its own with each signal; false if there is no pipe for them.
    private static func handle(_ numbers: [Int32], _ body: @escaping @Sendable (Int32) -> Void) -> Bool {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return false }
        let (reader, writer) = (ends[0], ends[1])
        _ = (fcntl(reader, F_SETFD, FD_CLOEXEC), fcntl(writer, F_SETFD, FD_CLOEXEC))
        for number in numbers { clinux_catch_signal(number, writer) }
        _ = NamedThread(name: "signals") {
            var byte: UInt8 = 0
            while unsafe read(reader, &byte, 1) == 1 || errno == EINTR { body(Int32(byte)) }
        }
        return true
    }
}
