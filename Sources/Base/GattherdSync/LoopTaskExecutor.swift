/// An executor for tasks on a loop's thread: calls between these tasks and the loop's actors need no thread switch.
public final class LoopTaskExecutor: TaskExecutor {
    private let loop: EventLoop

    public init(_ loop: EventLoop) {
        self.loop = loop
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(.taskJob(UnownedJob(job), self))
    }
}
