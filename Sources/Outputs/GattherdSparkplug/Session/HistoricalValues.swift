/// The values of a session that are published as historical: those committed before its births.
struct HistoricalValues: Sendable {
    /// The number of the last historical entry; -1 before the first births.
    private(set) var end: Int64 = -1
    /// True from the births until the historical values are sent.
    private var areDue = false

    /// Starts with the births of a session; `head` is the newest committed number, if known.
    mutating func start(head: Int64?) {
        end = head ?? end
        areDue = true
    }

    /// Records the first known head, which marks the backlog also if the node is born already.
    mutating func headBecameKnown(_ seq: Int64) {
        end = seq
    }

    /// Returns true once for each session, when all historical values are sent.
    mutating func finish(_ progress: JournalProgress) -> Bool {
        guard areDue, progress.cursor != nil, progress.sent >= min(end, progress.head ?? end) else { return false }
        areDue = false
        return true
    }
}
