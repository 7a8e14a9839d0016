import GattherdSync
import Glibc

/// Signals as a stream: nothing runs in a signal handler.
public enum ProcessSignals {
    /// Takes `numbers` out of the kernel's hands, for good, and gives them as they come.
    ///
    /// Call it first thing in `main`: threads that exist already would still be interrupted.
    public static func stream(of numbers: Int32...) -> AsyncStream<Int32> {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingNewest(16))
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in numbers { unsafe sigaddset(&set, number) }
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
        let waited = set
        _ = NamedThread(name: "signals") {
            var waited = waited
            var number: Int32 = 0
            while unsafe sigwait(&waited, &number) == 0 { continuation.yield(number) }
        }
        return stream
    }
}
