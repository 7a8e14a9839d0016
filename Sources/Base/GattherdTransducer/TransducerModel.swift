public import Observation

/// The observable proxy of a runner for a user interface.
///
/// The output is current as soon as ``send(_:)`` returns. ``run()`` performs effects and follows all other changes, for
/// example in the task of the view.
@MainActor @Observable public final class TransducerModel<Machine: Transducer> {
    public let runner: TransducerRunner<Machine>
    public private(set) var output: Machine.Output
    public private(set) var isFinished: Bool

    public init(_ runner: TransducerRunner<Machine>) {
        self.runner = runner
        output = runner.output
        isFinished = runner.isFinished
    }

    /// Handles an event.
    ///
    /// - Throws: ``TransducerFinished`` after the end.
    public func send(_ event: Machine.Event) throws(TransducerFinished) {
        try runner.send(event)
        update()
    }

    /// Runs the runner and follows it, until the transducer has finished or the caller is cancelled.
    public func run() async {
        async let end = runner.run()
        for await _ in runner.outputs { update() }
        _ = await end
        update()
    }

    /// Reads the runner: an element of a stream could be older than the last event.
    private func update() {
        if output != runner.output { output = runner.output }
        if isFinished != runner.isFinished { isFinished = runner.isFinished }
    }
}
