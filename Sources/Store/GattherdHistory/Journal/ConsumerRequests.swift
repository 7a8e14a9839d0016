import GattherdModel

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
    /// The number of those that were dropped before all consumers had got them.
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
