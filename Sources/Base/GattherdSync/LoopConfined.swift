/// An executor for tasks on a loop's thread: calls between these tasks and the loop's actors need no thread switch.
///
/// The run-time resumes every wait on the task's executor, and only then switches to the actor. A task without this
/// preference passes through the thread pool after each wait, also on the loop's own actors.
public final class LoopTaskExecutor: TaskExecutor {
    private let loop: EventLoop

    public init(_ loop: EventLoop) {
        self.loop = loop
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(.taskJob(UnownedJob(job), self))
    }
}

/// A value for the thread of one event loop.
///
/// Access from another thread is a programming error and ends the process.
///
/// `@unchecked Sendable` is safe: every access checks the thread.
public final class LoopConfined<Value>: @unchecked Sendable {
    private var storage: Value
    private let loop: EventLoop

    /// Confines `value` to the thread of `loop`.
    public init(_ value: sending Value, to loop: EventLoop) {
        storage = value
        self.loop = loop
    }

    /// The value; on the loop's thread only.
    public var value: Value {
        _read {
            loop.checkIsolated()
            yield storage
        }
        _modify {
            loop.checkIsolated()
            yield &storage
        }
    }
}
