import GattherdSync

/// The owner of one transducer: handles its events and performs its effects.
///
/// ``send(_:)`` handles an event at once, on any thread, so ``output`` is current when it returns. ``run()`` performs
/// the effects; tasks and timers of effects end with it.
public final class TransducerRunner<Machine: Transducer>: Sendable {
    private struct Core: Sendable {
        var machine: Machine
        /// The effects that ``TransducerRunner/run()`` has not performed yet.
        var effects: [Machine.Effect] = []
        /// The effects of the event that finished the machine.
        var lastEffects: [Machine.Effect] = []
        /// The numbers of the tasks whose events are accepted.
        var active: Set<Int> = []
        /// The numbers of the tasks that have ended.
        var ended: [Int] = []
        var isRunning = false
        var isClosed = false

        var isFinished: Bool { isClosed || machine.isFinished }
    }

    private let core: Locked<Core>
    private let latest: LatestValue<Machine.Output>
    private let perform: @Sendable (Machine.Effect) -> EffectAction<Machine.Event>
    private let now: @Sendable () -> Duration
    private let sleep: @Sendable (Duration) async -> Void
    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameters:
    ///   - machine: The transducer in its initial state.
    ///   - clock: The clock of deadlines; time starts with the runner.
    ///   - perform: Translates an effect into an action. It is called in order and must not block.
    public init(
        _ machine: Machine,
        clock: some Clock<Duration> = ContinuousClock(),
        perform: @escaping @Sendable (Machine.Effect) -> EffectAction<Machine.Event>
    ) {
        core = Locked(Core(machine: machine))
        latest = LatestValue(machine.output)
        self.perform = perform
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try? await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }

    /// The newest output.
    public var output: Machine.Output { latest.state }

    /// True if events are no longer accepted: the transducer has finished or ``run()`` has ended.
    public var isFinished: Bool { core.withLock { $0.isFinished } }

    /// The current output and each newer one, until the end; a slow reader skips values.
    public var outputs: AsyncStream<Machine.Output> { latest.watch() }

    /// Handles an event; its effects are performed by ``run()``.
    ///
    /// - Throws: ``TransducerFinished`` if ``isFinished``.
    public func send(_ event: Machine.Event) throws(TransducerFinished) {
        guard handle(event, of: nil) else { throw TransducerFinished() }
    }

    /// Performs effects until the transducer has finished or the caller is cancelled.
    ///
    /// Effects of earlier events are performed first. The event that finishes the transducer starts no tasks. At the
    /// end all tasks of effects are cancelled and awaited. A second call waits for the end of the first.
    ///
    /// - Returns: The last output.
    @discardableResult public func run() async -> Machine.Output {
        guard start() else { return await lastOutput() }
        var tasks = EffectTasks()
        wake.yield()
        for await _ in wakes {
            guard performEffects(&tasks) else { break }
        }
        core.withLock { core in
            core.isClosed = true
            core.active = []
        }
        await tasks.cancelAll()
        latest.finish()
        return latest.state
    }

    private func start() -> Bool {
        core.withLock { core in
            defer { core.isRunning = true }
            return !core.isRunning
        }
    }

    private func lastOutput() async -> Machine.Output {
        for await _ in latest.watch() {}
        return latest.state
    }

    // MARK: - Events

    /// Handles an event.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - task: The number of the task that sends it, if any.
    /// - Returns: False if events are no longer accepted.
    private func handle(_ event: Machine.Event, of task: Int?) -> Bool {
        var isAccepted = false
        latest.update { output in
            let next: Machine.Output? = core.withLock { core in
                guard !core.isFinished, task.map(core.active.contains) ?? true else { return nil }
                let effects = core.machine.handle(event, at: now())
                if core.machine.isFinished { core.lastEffects = effects } else { core.effects += effects }
                return core.machine.output
            }
            guard let next else { return }
            output = next
            isAccepted = true
        }
        if isAccepted { wake.yield() }
        return isAccepted
    }

    // MARK: - Effects

    /// Performs the waiting effects and sets the timer; returns false at the end.
    private func performEffects(_ tasks: inout EffectTasks) -> Bool {
        while true {
            let work = dequeue()
            tasks.remove(work.ended)
            for effect in work.effects { carryOut(perform(effect), &tasks, isLast: false) }
            for effect in work.lastEffects { carryOut(perform(effect), &tasks, isLast: true) }
            guard !work.isFinished else { return false }
            guard work.effects.isEmpty else { continue }
            tasks.setTimer(work.deadline) { [self] deadline in await tick(at: deadline) }
            return true
        }
    }

    private struct Work {
        let effects: [Machine.Effect]
        let lastEffects: [Machine.Effect]
        let ended: [Int]
        let deadline: Duration?
        let isFinished: Bool
    }

    private func dequeue() -> Work {
        core.withLock { core in
            defer { (core.effects, core.lastEffects, core.ended) = ([], [], []) }
            return Work(
                effects: core.effects,
                lastEffects: core.lastEffects,
                ended: core.ended,
                deadline: core.machine.deadline,
                isFinished: core.isFinished
            )
        }
    }

    /// Carries out an action; tasks of the last effects are not started.
    private func carryOut(_ action: EffectAction<Machine.Event>, _ tasks: inout EffectTasks, isLast: Bool) {
        switch action {
        case .none: break
        case .send(let event): _ = handle(event, of: nil)
        case .cancel(let id): cancel(id, &tasks)
        case .start where isLast: break
        case .start(let id, let operation):
            if let id { cancel(id, &tasks) }
            let number = tasks.next
            _ = core.withLock { $0.active.insert(number) }
            tasks.start(id) { [self] number in
                await operation(EffectSender { [self] event in _ = handle(event, of: number) })
                end(number)
            }
        }
    }

    /// Cancels a task; its events are refused before it can notice that.
    private func cancel(_ id: EffectID, _ tasks: inout EffectTasks) {
        tasks.cancel(id) { number in core.withLock { _ = $0.active.remove(number) } }
    }

    /// Records the end of a task.
    private func end(_ number: Int) {
        core.withLock { core in
            core.active.remove(number)
            core.ended.append(number)
        }
        wake.yield()
    }

    private func tick(at deadline: Duration) async {
        await sleep(deadline)
        guard !Task.isCancelled, let tick = Machine.tick else { return }
        _ = handle(tick, of: nil)
    }
}
