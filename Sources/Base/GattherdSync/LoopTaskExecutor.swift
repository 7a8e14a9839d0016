/// Lets tasks that belong to no actor run on a loop's thread, so that talking to the loop's actor changes no threads.
public final class LoopTaskExecutor: TaskExecutor {
    private let loop: EventLoop

    public init(_ loop: EventLoop) {
        self.loop = loop
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(.taskJob(UnownedJob(job), self))
    }
}
