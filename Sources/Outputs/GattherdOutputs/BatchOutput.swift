import GattherdLog
public import GattherdModel
import GattherdSync

/// An output that delivers the entries of the journal to a ``BatchSink``, or to a ``CursorKeepingSink`` exactly once.
///
/// See ``BatchMachine`` for the guarantees.
///
/// The sink's calls run outside of this actor, so a slow or hanging sink delays nothing else. A call that ignores its
/// cancellation is abandoned at the end.
public actor BatchOutput: Output {
    public nonisolated let name: String
    public nonisolated let kind: String
    private let sink: any BatchSink
    private let journal: any JournalConsumer
    private let reporter: OutputReporter
    private nonisolated let board: Locked<OutputStatus>
    private let origin = SuspendingClock.now
    private var machine: BatchMachine
    private var events: [BatchMachine.Event] = []
    private var isStepping = false
    /// The number of the journal's corrections that the machine knows.
    private var corrections = 0
    /// The epoch for which the receiver was asked for its cursor last.
    private var epoch: JournalEpoch?
    /// The running call of the sink.
    private var call: (ticket: Int, task: Task<Void, Never>)?
    private var timer: (deadline: Duration, task: Task<Void, Never>)?
    private var hasEnded = false
    /// The callers that wait for the end.
    private var waiters: [CheckedContinuation<Void, Never>] = []

    /// Creates an idle output; see ``run()``.
    ///
    /// - Parameters:
    ///   - context: The name, the journal, the log and the record of events.
    ///   - target: The receiver for people, without secrets.
    ///   - sink: The part that writes to the receiver.
    ///   - options: The limits and durations.
    public init(
        _ context: OutputContext,
        target: String,
        sink: any BatchSink,
        options: BatchOptions = BatchOptions()
    ) {
        (name, kind, journal) = (context.name, context.kind, context.journal)
        self.sink = sink
        reporter = OutputReporter(name: name, target: target, log: context.log, record: context.record)
        board = Locked(OutputStatus(target: target))
        let keepsCursor = sink is any CursorKeepingSink
        machine = BatchMachine(options: options, keepsCursor: keepsCursor, seed: .random(in: .min ... .max))
    }

    public nonisolated var status: OutputStatus { board.withLock { $0 } }

    public func run() async {
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                step(.start)
                group.addTask { await self.followHead() }
                // For other sinks, the machine loads the cursor.
                if sink is any CursorKeepingSink { group.addTask { await self.load() } }
                await waitForEnd()
                group.cancelAll()
            }
        } onCancel: {
            Task { await self.stop(within: .zero) }
        }
    }

    public func roundTrip() {}

    /// Delivers the remaining entries for at most `limit`, and ends ``run()`` at most ``BatchOptions/stopLimit`` later.
    public func stop(within limit: Duration) async {
        step(.stop(drain: limit))
        await waitForEnd()
    }

    /// Waits for the end; cancellation does not shorten the wait, which the machine bounds.
    private func waitForEnd() async {
        guard !hasEnded else { return }
        await withCheckedContinuation { waiters.append($0) }
    }

    private func followHead() async {
        for await seq in journal.heads() where seq >= 0 { step(.headMoved(seq)) }
    }

    // MARK: - The machine

    /// The time since the creation; time in which the system is suspended does not count.
    private var now: Duration { SuspendingClock.now - origin }

    /// Passes an event to the machine and performs its effects; events caused by them follow.
    private func step(_ event: BatchMachine.Event) {
        updateCorrections()
        events.append(event)
        guard !isStepping else { return }
        isStepping = true
        while !events.isEmpty {
            for effect in machine.handle(events.removeFirst(), at: now) { perform(effect) }
        }
        isStepping = false
        reporter.reportDue(isLast: hasEnded)
        setTimer(machine.deadline)
        show(machine.output)
    }

    /// Adds an event if the journal has corrected times since the last step.
    private func updateCorrections() {
        let count = journal.correctionCount
        guard count != corrections else { return }
        corrections = count
        events.append(.timesCorrected)
    }

    private func perform(_ effect: BatchMachine.Effect) {
        switch effect {
        case .load: Task { await self.load() }
        case .fetch(let after, let limit): fetch(after: after, limit: limit)
        case .save(let seq): Task { await self.save(seq) }
        case .rewind(let seq): Task { await self.rewind(to: seq) }
        case .write(let entries, let after, let through, let ticket):
            call(ticket) { (sink) throws(OutputFault) in
                guard let sink = sink as? any CursorKeepingSink else { return try await sink.write(entries) }
                try await self.expectSameEpoch()
                try await sink.write(entries, after: after, through: through)
            }
        case .loadReceiverCursor(let ticket): loadReceiverCursor(ticket)
        case .record(let gap, let ticket):
            call(ticket) { (sink) throws(OutputFault) in
                try await self.expectSameEpoch()
                try await (sink as? any CursorKeepingSink)?.record(gap)
            }
        case .cancelWrite(let ticket): if call?.ticket == ticket { call?.task.cancel() }
        case .close: close()
        case .report(let report): reporter.handle(report)
        case .finish: finish()
        }
    }

    private func finish() {
        hasEnded = true
        call?.task.cancel()
        for waiter in waiters { waiter.resume() }
        waiters = []
    }

    /// Sends a tick at `deadline`, which replaces an earlier one.
    private func setTimer(_ deadline: Duration?) {
        guard deadline != timer?.deadline else { return }
        timer?.task.cancel()
        timer = deadline.map { deadline in (deadline, Task { await self.tick(at: deadline) }) }
    }

    private func tick(at deadline: Duration) async {
        try? await Task.sleep(for: deadline - now, clock: .loop)
        guard !Task.isCancelled, timer?.deadline == deadline else { return }
        timer = nil
        step(.tick)
    }

    private func show(_ progress: BatchMachine.Progress) {
        let (uptime, time) = (now, Timestamp(microseconds: WallClock.microseconds))
        board.withLock { status in
            (status.state, status.cursor, status.backlog) = (progress.state, progress.cursor, progress.backlog)
            (status.delivered, status.skipped) = (progress.delivered, progress.skipped)
            status.errors = progress.failures
            status.problem = progress.fault?.detail
            status.nextTry = progress.nextTry.map { time.advanced(by: $0 - uptime) }
            let oldest = progress.oldest?.time ?? progress.waitingSince.map { time.advanced(by: $0 - uptime) }
            // A stored record of a device is older than its arrival.
            let complete = progress.completeUntil.map { time.advanced(by: $0 - uptime) }
            status.waitingSince = oldest.map { max($0, complete ?? $0) }
        }
    }

    // MARK: - The journal

    private func load() async {
        do throws(StoreFault) {
            step(.cursorLoaded(try await journal.acknowledged()))
        } catch {
            failed(.load, error)
        }
    }

    /// Fetches from memory if possible; the file has the backlog.
    private func fetch(after seq: Int64, limit: Int) {
        if let batch = journal.recent(after: seq, limit: limit) { return step(.fetched(batch)) }
        Task {
            do throws(StoreFault) {
                step(.fetched(try await journal.entries(after: seq, limit: limit)))
            } catch {
                failed(.fetch, error)
            }
        }
    }

    private func save(_ seq: Int64) async {
        do throws(StoreFault) {
            try await journal.acknowledge(through: seq)
            step(.saved(seq))
        } catch {
            failed(.save, error)
        }
    }

    private func rewind(to seq: Int64) async {
        do throws(StoreFault) {
            try await journal.rewind(to: seq)
            step(.rewound)
        } catch {
            failed(.rewind, error)
        }
    }

    private func failed(_ operation: BatchMachine.JournalOperation, _ fault: StoreFault) {
        reporter.journalFailed(operation, fault)
        step(.journalFailed(operation))
    }

    // MARK: - The sink

    /// Starts a call, detached because a sink may compute or block.
    private func call(_ ticket: Int, _ body: @escaping @Sendable (any BatchSink) async throws(OutputFault) -> Void) {
        let task = Task.detached { [sink] in
            var event = BatchMachine.Event.written(ticket: ticket, nil)
            do throws(OutputFault) {
                try await body(sink)
            } catch {
                event = .written(ticket: ticket, error)
            }
            await self.ended(ticket, event)
        }
        call = (ticket, task)
    }

    /// Asks the receiver for its cursor in the journal's epoch.
    private func loadReceiverCursor(_ ticket: Int) {
        let task = Task.detached { [sink, journal] in
            var event = BatchMachine.Event.written(ticket: ticket, nil)
            do throws(OutputFault) {
                guard let sink = sink as? any CursorKeepingSink else { return }
                let epoch = try await journal.knownEpoch()
                event = .receiverCursorLoaded(ticket: ticket, try await sink.cursor(in: epoch))
                await self.found(epoch)
            } catch {
                event = .written(ticket: ticket, error)
            }
            await self.ended(ticket, event)
        }
        call = (ticket, task)
    }

    private func found(_ epoch: JournalEpoch) { self.epoch = epoch }

    /// Throws if the journal's file was replaced, so that the receiver is asked for its cursor in the new epoch.
    private func expectSameEpoch() async throws(OutputFault) {
        guard try await journal.knownEpoch() != epoch else { return }
        throw OutputFault(.unavailable, "history has a new epoch, because its file was replaced; no action is needed")
    }

    private func ended(_ ticket: Int, _ event: BatchMachine.Event) {
        if call?.ticket == ticket { call = nil }
        step(event)
    }

    private func close() {
        Task.detached { [sink] in
            await sink.close()
            await self.step(.closed)
        }
    }
}

extension JournalConsumer {
    /// The epoch; a journal that cannot be read keeps the receiver waiting like a fault of its own.
    fileprivate func knownEpoch() async throws(OutputFault) -> JournalEpoch {
        do throws(StoreFault) {
            return try await epoch()
        } catch {
            throw OutputFault(.unavailable, "the journal cannot be read: \(error.detail)")
        }
    }
}
