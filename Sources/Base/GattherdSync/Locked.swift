public import Glibc

/// A value behind a POSIX mutex.
///
/// `Synchronization.Mutex` confuses Thread Sanitizer on Linux (Swift 6.3.1), a POSIX mutex does not.
/// `@unchecked Sendable` is safe: the value is reached only through ``withLock(_:)``. That can be inlined into other
/// modules, because generic code would copy values and results.
@safe public final class Locked<Value>: @unchecked Sendable {
    @usableFromInline var value: Value
    @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>

    /// Creates a lock that owns `value`.
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

    /// Runs `body` exclusively; `body` must not call code that may use the same lock.
    ///
    /// Do not hold a lock that a cancellation handler or `onTermination` uses while resuming a continuation or yielding
    /// to a stream: the run-time holds a lock of the task in both cases.
    @inlinable
    public func withLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
