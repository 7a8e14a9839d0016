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

    /// Waits while the next entries are being corrected.
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
