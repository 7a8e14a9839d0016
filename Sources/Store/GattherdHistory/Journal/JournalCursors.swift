import GattherdModel

/// The cursors of the configured consumers, with the positions of these consumers in the journal's tail.
struct JournalCursors {
    /// The cursors, in the order of the consumers.
    private(set) var all: [JournalCursor]
    private let tail: JournalTail

    /// Reads the cursors; a consumer without undelivered readings is at `head`, the newest entry.
    ///
    /// Extents or entries up to `uncertain` may be missing.
    init(
        of consumers: [JournalConsumerOptions],
        _ table: CursorTable,
        _ connection: SQLiteConnection,
        _ tail: JournalTail,
        uncertain: Int64,
        head: Int64
    ) throws(StoreFault) {
        self.tail = tail
        all = try consumers.map { (consumer) throws(StoreFault) in
            try JournalCursor(consumer, table, connection, uncertain: uncertain, head: head)
        }
    }

    /// The lowest cursor; all consumers have acknowledged the entries up to it.
    var lowest: Int64? { all.map(\.seq).min() }

    /// The last number that all consumers have received, or will receive although it may be dropped.
    var handedOver: Int64? { all.map { $0.handedOver(tail) }.min() }

    /// The numbers by the names of the consumers.
    var byName: [String: Int64] {
        Dictionary(all.map { ($0.consumer.name, $0.seq) }) { first, _ in first }
    }

    /// True if a cursor differs from that in the file.
    var isSaveDue: Bool { all.contains(where: \.isSaveDue) }

    /// True if a cursor has passed so many entries that a crash should not repeat them.
    var isSaveUrgent: Bool { all.contains(where: \.isSaveUrgent) }

    /// The cursor of a consumer; `nil` if there is no such consumer.
    subscript(consumer: String) -> JournalCursor? { index(of: consumer).map { all[$0] } }

    private func index(of consumer: String) -> Int? {
        all.firstIndex { $0.consumer.name == consumer }
    }

    // MARK: - Changes

    /// Moves a cursor forward, never back.
    mutating func acknowledge(through seq: Int64, by consumer: String) {
        guard let index = index(of: consumer) else { return }
        all[index].acknowledge(through: seq)
    }

    /// Moves a cursor forward over entries that the consumer does not get; `isLoss` is true if there are any.
    mutating func skip(through seq: Int64, by consumer: String, isLoss: Bool) {
        guard let index = index(of: consumer) else { return }
        all[index].skip(through: seq, isLoss: isLoss)
        tail.skip(through: seq, by: consumer)
    }

    /// Moves a cursor back or forward; the consumer gets the entries after it again.
    mutating func move(_ consumer: String, to seq: Int64) {
        guard let index = index(of: consumer) else { return }
        all[index].move(to: seq)
        tail.move(consumer, to: seq)
    }

    /// Records that a consumer has received entries from the file.
    mutating func didRead(through seq: Int64, by consumer: String) {
        guard let index = index(of: consumer) else { return }
        all[index].didRead(through: seq)
    }

    /// Records that these numbers are in the file, in the order of the consumers.
    mutating func didSave(_ saved: [Int64]) {
        for (index, seq) in saved.enumerated() { all[index].didSave(seq) }
    }
}

extension JournalCursor {
    /// Reads the cursor of a consumer, which starts at `head` if it has no backlog.
    ///
    /// Extents or entries up to `uncertain` may be missing, so a cursor below it is not moved over any number.
    fileprivate init(
        _ consumer: JournalConsumerOptions,
        _ table: CursorTable,
        _ connection: SQLiteConnection,
        uncertain: Int64,
        head: Int64
    ) throws(StoreFault) {
        guard let saved = try table.cursor(of: consumer.name) else {
            try table.set(consumer.name, to: head)
            self.init(consumer, seq: head, saved: head)
            return
        }
        let waiting = try connection.integer(
            "SELECT min(first) FROM outbox WHERE first > \(saved - Extent.capacity) AND last > \(saved)"
        )
        let isExact = consumer.content == .everything || saved < uncertain
        let seq = isExact ? saved : waiting > 0 ? max(saved, waiting - 1) : head
        self.init(consumer, seq: seq, saved: saved)
    }
}
