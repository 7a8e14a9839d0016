import CLinux
import Glibc

/// A detached POSIX thread with a name for `top -H` and debuggers.
public struct NamedThread: Sendable {
    private final class Start {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// Starts `body` at once, with every signal blocked: signals belong to the main thread.
    ///
    /// - Parameters:
    ///   - name: The name; at most 15 bytes are shown.
    ///   - body: The work of the thread, which ends with it.
    public init(name: String, body: @escaping @Sendable () -> Void) {
        precondition(Self.start(name: name, body: body), "the thread '\(name)' cannot be started")
    }

    /// Starts a thread like ``init(name:body:)``, but returns false if the system refuses another thread.
    public static func start(name: String, body: @escaping @Sendable () -> Void) -> Bool {
        let start = unsafe Unmanaged.passRetained(Start(name: name, body: body))
        var all = sigset_t()
        var before = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread,
            nil,
            { context in
                guard let context = unsafe context else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                _ = unsafe start.name.withCString { unsafe clinux_name_thread($0) }
                start.body()
                return nil
            },
            start.toOpaque()
        )
        unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
        guard code == 0 else {
            unsafe start.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}

extension NamedThread {
    /// The pause before another attempt to start a thread.
    private static let startRetryPause = Duration.seconds(1)

    /// Runs `body`, which may block, on a thread of its own.
    ///
    /// Retries if the system refuses another thread.
    ///
    /// - Parameters:
    ///   - name: The name; at most 15 bytes are shown.
    ///   - body: The work; it continues after the caller is cancelled.
    /// - Returns: The result of `body`; `nil` if the caller was cancelled before.
    public static func result<Value: Sendable>(
        name: String,
        of body: @escaping @Sendable () -> Value
    ) async -> Value? {
        let (answers, answer) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingOldest(1))
        let run = { @Sendable in
            answer.yield(body())
            answer.finish()
        }
        while !start(name: name, body: run) {
            guard (try? await Task.sleep(for: startRetryPause, clock: .loop)) != nil else { return nil }
        }
        for await value in answers { return value }
        return nil
    }
}
