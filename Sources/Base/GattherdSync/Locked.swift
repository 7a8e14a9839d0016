import Glibc

/// A value behind a POSIX mutex.
///
/// `Synchronization.Mutex` confuses Thread Sanitizer on Linux (Swift 6.3.1), a POSIX mutex does not.
/// `@unchecked Sendable` is safe: the value is reached only through ``withLock(_:)``.
@safe public final class Locked<Value>: @unchecked Sendable {
    private var value: Value
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    /// Takes `value` over.
    public init(_ value: sending Value) {
        self.value = value
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe pthread_mutex_init(mutex, nil)
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Runs `body` alone; never call out to code that may take the same lock.
    ///
    /// A lock that a cancellation handler takes, or `onTermination`, must not be held while a continuation is resumed or
    /// a stream is told: the run-time holds a lock of the task in both.
    public func withLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
