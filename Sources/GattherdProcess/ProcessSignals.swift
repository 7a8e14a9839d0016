import CLinux
import GattherdSync
import Glibc

/// Signals as a stream: the handler writes into a pipe, everything else happens outside of it.
public enum ProcessSignals {
    /// Catches `numbers` from now on, and gives them as they come; once per process.
    public static func stream(of numbers: Int32...) -> AsyncStream<Int32> {
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
            while unsafe read(reader, &octet, 1) == 1 || errno == EINTR { continuation.yield(Int32(octet)) }
        }
        return stream
    }
}
