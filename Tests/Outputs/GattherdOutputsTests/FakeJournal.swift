import GattherdModel
import GattherdOutputs
import GattherdSync

/// A journal in memory; every other fetch finds nothing in memory and is answered as from the file.
final class FakeJournal: JournalConsumer {
    private struct State: Sendable {
        var fetches = 0
        var entries: [JournalEntry] = []
        var failures = 0

        /// The last entry that is deleted.
        var deleted: Int64 = 0
        var epoch = JournalEpoch(String(repeating: "0", count: 32))
        var corrections = 0

        func batch(after seq: Int64, limit: Int) -> JournalBatch {
            guard deleted <= seq else {
                return JournalBatch(missing: JournalGap(after: seq, through: deleted, reason: "deleted"))
            }
            let found = Array(entries.drop { $0.seq <= seq }.prefix(limit))
            return JournalBatch(found, through: (found.count < limit ? entries : found).last?.seq ?? 0)
        }
    }

    private let state = Locked(State())
    private let head = LatestValue<Int64>(-1)
    let cursor = LatestValue<Int64>(0)

    func commit(_ entries: [JournalEntry]) {
        state.withLock { $0.entries += entries }
        head.set(entries.last?.seq ?? 0)
    }

    /// Commits readings with the next numbers.
    func commit(_ count: Int) {
        let last = state.withLock { $0.entries.last?.seq ?? 0 }
        commit((0..<count).map { .text(seq: last + 1 + Int64($0)) })
    }

    /// Lets the next requests to the file fail.
    func fail(_ count: Int) {
        state.withLock { $0.failures = count }
    }

    private func failIfAsked() throws(StoreFault) {
        let mustFail = state.withLock { state in
            defer { state.failures = max(0, state.failures - 1) }
            return state.failures > 0
        }
        if mustFail { throw StoreFault("the disk is away", .disk) }
    }

    func heads() -> AsyncStream<Int64> { head.watch() }

    func recent(after seq: Int64, limit: Int) -> JournalBatch? {
        state.withLock { state in
            state.fetches += 1
            return state.fetches.isMultiple(of: 2) ? nil : state.batch(after: seq, limit: limit)
        }
    }

    func entries(after seq: Int64, limit: Int) async throws(StoreFault) -> JournalBatch {
        try failIfAsked()
        return state.withLock { $0.batch(after: seq, limit: limit) }
    }

    var correctionCount: Int { state.withLock { $0.corrections } }

    /// Adds seconds to the times of all entries.
    func correctTimes(by seconds: Int64) {
        state.withLock { state in
            state.entries = state.entries.map { .text(seq: $0.seq, correction: seconds) }
            state.corrections += 1
        }
    }

    func acknowledged() async throws(StoreFault) -> Int64 {
        try failIfAsked()
        return cursor.state
    }

    func acknowledge(through seq: Int64) async throws(StoreFault) {
        try failIfAsked()
        cursor.set(seq)
    }

    func epoch() async throws(StoreFault) -> JournalEpoch {
        try failIfAsked()
        return state.withLock { $0.epoch }
    }

    func rewind(to seq: Int64) async throws(StoreFault) {
        try failIfAsked()
        cursor.set(seq)
    }

    /// Starts another epoch, as a history whose file is replaced.
    func startEpoch(_ epoch: JournalEpoch) { state.withLock { $0.epoch = epoch } }

    /// Deletes the entries up to `seq`.
    func delete(through seq: Int64) {
        state.withLock { state in
            state.entries.removeAll { $0.seq <= seq }
            state.deleted = seq
        }
    }

    func waitForCursor(_ seq: Int64) async {
        for await cursor in cursor.watch() where cursor >= seq { return }
    }
}

/// A sink that answers its calls by a script, and then accepts everything.
final class ScriptedSink: BatchSink {
    enum Answer: Sendable {
        case accept
        case fail(OutputFault)
        /// Fails after this work.
        case failAfter(@Sendable () -> Void, OutputFault)
        /// Waits for the cancellation.
        case hang
        /// Ignores the cancellation as well.
        case hangForEver
    }

    private struct State: Sendable {
        var script: [Answer]
        var calls: [[JournalEntry]] = []
        var running = 0
        var maximumRunning = 0
        var isClosed = false
    }

    private static let never = LatestValue(0)
    private let state: Locked<State>
    /// The number of calls.
    let count = LatestValue(0)

    init(_ script: [Answer] = []) {
        state = Locked(State(script: script))
    }

    /// The numbers of the entries of each call.
    var calls: [[Int64]] { state.withLock { $0.calls.map { $0.map(\.seq) } } }
    /// The times of the entries of each call.
    var times: [[Timestamp]] { state.withLock { $0.calls.map { $0.compactMap(\.time) } } }
    /// The most calls at once.
    var maximumRunning: Int { state.withLock { $0.maximumRunning } }
    var isClosed: Bool { state.withLock { $0.isClosed } }

    func write(_ entries: [JournalEntry]) async throws(OutputFault) {
        let answer = start(entries)
        defer { state.withLock { $0.running -= 1 } }
        switch answer {
        case .accept: return
        case .fail(let fault): throw fault
        case .failAfter(let work, let fault):
            work()
            throw fault
        case .hang:
            try? await Task.sleep(for: .seconds(86_400), clock: .loop)
            throw OutputFault(.unavailable, "cancelled")
        case .hangForEver: await Task { for await _ in Self.never.watch() {} }.value
        }
    }

    private func start(_ entries: [JournalEntry]) -> Answer {
        let answer = state.withLock { state in
            state.calls.append(entries)
            state.running += 1
            state.maximumRunning = max(state.maximumRunning, state.running)
            return state.script.isEmpty ? Answer.accept : state.script.removeFirst()
        }
        count.update { $0 += 1 }
        return answer
    }

    /// Replaces the answers to the next calls.
    func setScript(_ script: [Answer]) {
        state.withLock { $0.script = script }
    }

    func waitForCalls(_ number: Int) async {
        for await count in count.watch() where count >= number { return }
    }

    func close() async {
        state.withLock { $0.isClosed = true }
    }
}
