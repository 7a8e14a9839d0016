import CLinux
import GattherdSync
import Glibc

/// Signals as a stream: the handler writes into a pipe, everything else happens outside of it.
public enum ProcessSignals {
    /// Catches `numbers` from now on, and gives them as they come; once per process.
    ///
    /// - Parameters:
    ///   - numbers: Which signals.
    ///   - insistent: Those of them that ask for the end: the second of them ends the process at once, with exit code
    ///     128 + its number, whatever the process is doing.
    /// - Returns: The signals as they come.
    public static func stream(of numbers: Int32..., insistent: Set<Int32> = []) -> AsyncStream<Int32> {
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
            var octet: UInt8 = 0
            var isEnding = false
            while unsafe read(reader, &octet, 1) == 1 || errno == EINTR {
                let number = Int32(octet)
                if insistent.contains(number) {
                    if isEnding { _exit(128 + number) }
                    isEnding = true
                }
                continuation.yield(number)
            }
        }
        return stream
    }
}
