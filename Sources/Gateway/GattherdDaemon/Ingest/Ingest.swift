import GattherdGATT
public import GattherdLog
public import GattherdModel
public import GattherdSync

/// Decodes received values and commits them in batches: see ``CommitPacing``.
public struct Ingest: Sendable {
    /// The maximum number of values in one commit; many values wait after a stall of the disk.
    private static let batchLimit = 2048
    /// The number of attempts, one second apart, to store the rest at the end.
    private static let lastTries = 5

    private let intake: Intake
    private let store: any ReadingStore
    private let commitInterval: Duration
    private let loop: EventLoop?
    private let recorder: EventRecorder
    private let clock: RecordClock?
    private let log: Log
    /// The number of iterations of the loop, including retries.
    private let rounds = LatestValue(0)

    /// - Parameters:
    ///   - intake: The source of values.
    ///   - store: The store of readings.
    ///   - commitInterval: The longest time for which few values wait for others.
    ///   - loop: The thread for decoding, preferably the store's; `nil` for a separate one.
    ///   - recorder: The recorder of events about the store.
    ///   - clock: The clock for the times of stored records; `nil` if it makes no steps.
    ///   - log: The log for people.
    public init(
        intake: Intake,
        store: any ReadingStore,
        commitInterval: Duration,
        loop: EventLoop? = nil,
        recorder: EventRecorder,
        clock: RecordClock? = nil,
        log: Log
    ) {
        self.intake = intake
        self.store = store
        self.commitInterval = commitInterval
        self.loop = loop
        self.recorder = recorder
        self.clock = clock
        self.log = log
    }

    /// Runs until the intake is finished, then commits the remaining values.
    public func run() async {
        let own = loop == nil ? EventLoop(name: "ingest") : nil
        defer { own?.stop() }
        guard let loop = loop ?? own else { return }
        await withTaskExecutorPreference(LoopTaskExecutor(loop)) { await run(on: loop) }
    }

    private func run(on loop: EventLoop) async {
        var buffer = Intake.Buffer()
        var batch = ReadingBatch()
        var decoder = BatchDecoder(clock: clock)
        var reportedDrops: UInt64 = 0
        var lastTries = Self.lastTries
        var pacing = CommitPacing(interval: commitInterval)
        var resetTimer: SuspendingClock.Instant?
        for await _ in intake.arrivals {
            switch pacing.next(for: intake.count, isUrgent: intake.removeDemand(), at: .now) {
            case .commit: await commit(&buffer, &batch, &decoder, &reportedDrops, &lastTries)
            case .wakeUp(let delay): wake(after: delay, on: loop)
            case .wait: break
            }
            await resetEvents(&batch, &decoder, &reportedDrops, &lastTries)
            if let next = decoder.nextReset, next > .now, resetTimer.map({ next < $0 || $0 <= .now }) ?? true {
                resetTimer = next
                wake(after: SuspendingClock.now.duration(to: next), on: loop)
            }
            rounds.update { $0 += 1 }
        }
        await commit(&buffer, &batch, &decoder, &reportedDrops, &lastTries)
    }

    private func wake(after delay: Duration, on loop: EventLoop) {
        loop.execute { [intake] in loop.schedule(after: delay) { intake.wake() } }
    }

    /// Commits the events that are reset, unless newer values wait.
    private func resetEvents(
        _ batch: inout ReadingBatch,
        _ decoder: inout BatchDecoder,
        _ reportedDrops: inout UInt64,
        _ lastTries: inout Int
    ) async {
        guard let next = decoder.nextReset, next <= .now, intake.count == 0 else { return }
        batch.removeAll()
        decoder.resetEvents(at: .now, into: &batch)
        if !batch.isEmpty { await append(batch, &decoder, &reportedDrops, &lastTries) }
    }

    /// The pause before a batch that history refused is offered again.
    private static let retryPause = Duration.seconds(1)

    /// Returns when the loop has run once more, or the caller is cancelled.
    func roundTrip() async {
        let before = rounds.state
        intake.wake()
        for await round in rounds.watch() where round > before { return }
    }

    private func commit(
        _ buffer: inout Intake.Buffer,
        _ batch: inout ReadingBatch,
        _ decoder: inout BatchDecoder,
        _ reportedDrops: inout UInt64,
        _ lastTries: inout Int
    ) async {
        intake.drain(into: &buffer)
        guard !buffer.isEmpty else { return }
        await loadState(&decoder)
        for start in stride(from: 0, to: buffer.entries.count, by: Self.batchLimit) {
            batch.removeAll()
            let entries = buffer.entries[start...].prefix(Self.batchLimit)
            trace(entries, of: buffer.bytes)
            decoder.decode(entries, of: buffer.bytes, into: &batch)
            if !batch.isEmpty { await append(batch, &decoder, &reportedDrops, &lastTries) }
            for reject in decoder.removeUndecodable() { report(undecodable: reject) }
            for finding in decoder.records.removeFindings() { recorder.record(finding) }
            reportDropped(since: &reportedDrops)
            rounds.update { $0 += 1 }
        }
        batch.removeAll()
        decoder.end(buffer.endedDecoders, into: &batch)
        if !batch.isEmpty { await append(batch, &decoder, &reportedDrops, &lastTries) }
        for reject in decoder.removeUndecodable() { report(undecodable: reject) }
        buffer.removeAll()
    }

    /// Writes received values to the log at `trace`, before they are decoded.
    private func trace(_ entries: ArraySlice<Intake.Buffer.Entry>, of octets: [UInt8]) {
        guard log.includes(.trace) else { return }
        for entry in entries {
            let stream = entry.binding.stream
            let bytes = Hexadecimal.text(octets.span.extracting(entry.bytes))
            let fields = [LogField("device", stream.device), LogField("stream", stream.stream)]
            log(.trace, "value", fields + [LogField("source", entry.source.rawValue), LogField("bytes", bytes)])
        }
    }

    /// Loads the replay counters and the record cursors from before the restart; without history the decoders start
    /// without them.
    private func loadState(_ decoder: inout BatchDecoder) async {
        guard !decoder.hasMarks || !decoder.records.isLoaded else { return }
        do throws(StoreFault) {
            if !decoder.hasMarks { decoder.loadMarks(try await store.replayMarks()) }
            decoder.records.load(try await store.recordCursors())
        } catch {
            log(
                .debug,
                "the replay counters and record cursors are not readable yet",
                [.init("history.error", error.detail)]
            )
        }
    }

    /// Retries until the store has the batch; the store itself reports its errors.
    ///
    /// Meanwhile the intake fills up to its limit. After the end of the intake the batch is dropped after
    /// ``lastTries``.
    private func append(
        _ batch: ReadingBatch,
        _ decoder: inout BatchDecoder,
        _ reportedDrops: inout UInt64,
        _ lastTries: inout Int
    ) async {
        var tries = 0
        while true {
            do throws(StoreFault) {
                if try await store.append(batch) { return decoder.records.resume() }
                return await suspendDownloads(batch, &decoder)
            } catch {
                tries += 1
                rounds.update { $0 += 1 }
                if tries.isMultiple(of: 60) { reportDropped(since: &reportedDrops) }
                if intake.isFinished { lastTries -= 1 }
                guard lastTries > 0, (try? await Task.sleep(for: Self.retryPause, clock: .loop)) != nil else {
                    reportLoss(batch, error)
                    return await suspendDownloads(batch, &decoder)
                }
            }
        }
    }

    /// Suspends downloads after a batch was not stored; no later cursor covers its records.
    private func suspendDownloads(_ batch: ReadingBatch, _ decoder: inout BatchDecoder) async {
        decoder.records.suspend()
        guard !batch.cursors.isEmpty else { return }
        decoder.records.revert(batch.cursors.keys, to: try? await store.recordCursors())
    }

    /// Reports once that no value of a characteristic decodes; history has each payload.
    private func report(undecodable reject: Reject) {
        let advice = "firmware of another format? see: gattherd rejects --device \(reject.device)"
        log(
            .warning,
            "payloads of a device do not decode; firmware of another format? See: gattherd rejects",
            [
                .init("device", reject.device), .init("characteristic", reject.characteristic),
                .init("reject.reason", reject.reason),
            ]
        )
        recorder.record(
            device: reject.device,
            kind: "decoding",
            [
                "state": .text("failed"),
                "detail": .text("\(reject.characteristic): \(reject.reason); \(advice)"),
            ]
        )
    }

    /// Reports dropped values.
    private func reportDropped(since reportedDrops: inout UInt64) {
        let dropped = intake.dropped.value
        guard dropped > reportedDrops else { return }
        log(.error, "values were dropped: history does not keep up", [.init("values", dropped - reportedDrops)])
        recorder.record(
            kind: "history",
            ["state": .text("dropped"), "values": .integer(Int64(dropped - reportedDrops))]
        )
        reportedDrops = dropped
    }

    private func reportLoss(_ batch: ReadingBatch, _ fault: StoreFault) {
        log(
            .error,
            "stopped while history could not be written; unsaved readings were lost",
            [.init("readings", batch.readings.count), .init("history.error", fault.detail)]
        )
    }
}

/// Decides when received values are committed.
///
/// A commit costs far more than a value in it. Values therefore wait for others, unless the last commit was long ago or
/// enough values wait. Values that arrive in groups are committed with the last group that comes in time.
struct CommitPacing {
    enum Step: Hashable {
        case commit
        /// No commit for this time.
        case wakeUp(Duration)
        /// No commit before a value arrives or the pending timer fires.
        case wait
    }

    /// The number of values that justifies a commit: further ones hardly make a value cheaper.
    static let enough = 512

    /// The longest time for which few values wait.
    private let interval: Duration
    /// The time of the next commit of few values, if none come shortly before.
    private var due: SuspendingClock.Instant?
    private var isWakeUpSet = false
    /// The time and the number of values of the last arrival.
    private var last: (time: SuspendingClock.Instant, count: Int)?

    init(interval: Duration) {
        self.interval = interval
    }

    /// Returns the next step for `count` waiting values; a commit is assumed to be carried out.
    mutating func next(for count: Int, isUrgent: Bool = false, at now: SuspendingClock.Instant) -> Step {
        guard count > 0 else { return .wait }
        let next = nextArrival(count, at: now)
        if let due, due > now, next <= due, count < Self.enough, !isUrgent {
            defer { isWakeUpSet = true }
            return isWakeUpSet ? .wait : .wakeUp(due - now)
        }
        due = now + interval
        isWakeUpSet = false
        last?.count = 0
        return .commit
    }

    /// The expected time of the next values, as long after these as these came after the last ones, up to a quarter of
    /// the interval.
    private mutating func nextArrival(_ count: Int, at now: SuspendingClock.Instant) -> SuspendingClock.Instant {
        guard let last, count > last.count else {
            last = last ?? (now, count)
            return now
        }
        self.last = (now, count)
        return now + min(now - last.time, interval / 4)
    }
}
