public import GattherdModel
import GattherdSync

/// The journal of a history as one consumer sees it.
public struct HistoryConsumer: JournalConsumer {
    private let history: ReadingHistory
    private let options: JournalConsumerOptions
    private let tail: JournalTail

    init(_ history: ReadingHistory, _ options: JournalConsumerOptions, _ tail: JournalTail) {
        (self.history, self.options, self.tail) = (history, options, tail)
    }

    /// Starts with -1 until a file could be opened, because the earlier entries are unknown.
    public func heads() -> AsyncStream<Int64> { history.newest.watch() }

    public func recent(after seq: Int64, limit: Int) -> JournalBatch? {
        tail.entries(after: seq, limit: limit, for: options)
    }

    public var correctionCount: Int { options.content == .readings ? tail.correctionCount : 0 }

    /// Waits while the next entries of a consumer of everything are being corrected.
    public func entries(after seq: Int64, limit: Int) async throws(StoreFault) -> JournalBatch {
        try await history.entries(after: seq, limit: limit, for: options.name)
    }

    public func acknowledged() async throws(StoreFault) -> Int64 {
        try await history.acknowledged(by: options.name)
    }

    public func acknowledge(through seq: Int64) async throws(StoreFault) {
        try await history.acknowledge(through: seq, by: options.name)
    }

    public func epoch() async throws(StoreFault) -> JournalEpoch { try await history.epoch() }

    public func rewind(to seq: Int64) async throws(StoreFault) {
        try await history.rewind(to: seq, for: options.name)
    }
}

/// The requests of consumers that need the file, and the readings that it does not have.
struct ConsumerRequests {
    private var unstored: UnstoredReadings
    /// Callers that wait for the end of a correction or of a scan.
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(consumers: [String]) {
        unstored = UnstoredReadings(consumers: consumers)
    }

    // MARK: - Readings that could not be stored

    /// The number of readings that are held in memory only.
    var unstoredLeft: Int { unstored.left }
    /// The number of readings that were not stored.
    var unstoredCount: Int { unstored.count }
    /// The number of the last one; 0 without any.
    var lastUnstored: Int64 { unstored.last }
    /// The number of unstored readings that were dropped before all consumers had them.
    var droppedCount: Int { unstored.dropped }

    mutating func append(_ readings: [JournalReading]) { unstored.append(readings) }

    // MARK: - Entries and cursors

    mutating func entries(
        after seq: Int64,
        limit: Int,
        for consumer: String,
        in file: HistoryFile
    ) throws(StoreFault) -> JournalBatch {
        file.journal?.lost.removeUnstored(through: unstored.removed)
        let stored = try file.entries(after: seq, limit: limit, for: consumer)
        guard !unstored.isEmpty else { return stored }
        let isComplete = stored.through >= file.sequence.last
        return unstored.merged(with: stored, after: seq, limit: limit, isComplete: isComplete, for: consumer)
    }

    func acknowledged(by consumer: String, in file: HistoryFile) -> Int64 {
        file.journal?.cursor(of: consumer) ?? file.head
    }

    /// Moves a cursor, which is saved with a later commit.
    mutating func acknowledge(through seq: Int64, by consumer: String, in file: HistoryFile) {
        unstored.acknowledge(through: seq, by: consumer)
        file.journal?.acknowledge(through: min(seq, file.sequence.last), by: consumer)
    }

    // MARK: - Waiting

    mutating func wait(_ caller: CheckedContinuation<Void, Never>) { waiting.append(caller) }

    /// Lets all waiting callers try again.
    mutating func resume() {
        for caller in waiting { caller.resume() }
        waiting = []
    }
}
