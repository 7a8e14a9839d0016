import CLinux
import GattherdSync
import Glibc

/// Signals as a stream.
///
/// The handler only writes to a pipe.
public enum ProcessSignals {
    /// Catches signals; call it once per process.
    ///
    /// - Parameters:
    ///   - numbers: The signals to catch.
    ///   - terminating: Signals that request termination. The second of them ends the process at once, with exit code
    ///     128 + its number.
    /// - Returns: The numbers of the caught signals.
    public static func stream(of numbers: Int32..., terminating: Set<Int32> = []) -> AsyncStream<Int32> {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingNewest(16))
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else {
            continuation.finish()
            return stream
        }
        let (reader, writer) = (ends[0], ends[1])
        _ = (fcntl(reader, F_SETFD, FD_CLOEXEC), fcntl(writer, F_SETFD, FD_CLOEXEC))
        for number in numbers { clinux_catch_signal(number, writer) }
        _ = NamedThread(name: "signals") {
            var byte: UInt8 = 0
            var isEnding = false
            while unsafe read(reader, &byte, 1) == 1 || errno == EINTR {
                let number = Int32(byte)
                if terminating.contains(number) {
                    if isEnding { _exit(128 + number) }
                    isEnding = true
                }
                continuation.yield(number)
            }
        }
        return stream
    }
}
