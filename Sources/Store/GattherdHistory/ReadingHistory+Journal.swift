public import GattherdModel
import GattherdSync

extension ReadingHistory: ReadingJournal {
    /// Starts with -1 until a file could be opened, because the earlier readings are unknown.
    public nonisolated func heads() -> AsyncStream<Int64> {
        newest.watch()
    }

    public nonisolated func recent(after seq: Int64, limit: Int) -> [JournalReading]? {
        tail.take(after: seq, limit: limit)
    }

    public func readings(after seq: Int64, limit: Int) throws(StoreFault) -> [JournalReading] {
        do throws(StoreFault) {
            let stored = try opened().readings(after: seq, limit: limit)
            guard !unstored.isEmpty else { return stored }
            return unstored.take(with: stored, after: seq, limit: limit)
        } catch {
            if !isClosed { notice(error) }
            throw error
        }
    }

    public func acknowledged() throws(StoreFault) -> Int64 {
        let file = try opened()
        return file.outbox?.cursor ?? file.head
    }

    /// Moves the cursor, which is saved with the next commit or after a short delay.
    ///
    /// A cursor that has passed many readings is committed at once, so that a crash repeats few of them.
    public func acknowledge(through seq: Int64) throws(StoreFault) {
        let file = try opened()
        unstored.acknowledge(through: seq)
        file.outbox?.acknowledge(through: min(seq, file.sequence.last))
        keepCursor()
    }
}
