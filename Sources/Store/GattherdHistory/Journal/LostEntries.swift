import GattherdModel

/// Finds the numbers whose entries the journal has lost, so that a consumer does not pass over them unnoticed.
///
/// Each way to lose entries leaves a mark: the highest number concerned. Up to the highest mark, numbers without an
/// entry are lost. Above it they were never assigned, for example after a crash.
final class LostEntries {
    /// A cause, and the highest number that it concerns.
    private typealias Mark = (through: Int64, reason: String)

    private let state: StateTable
    private let selectReplaced: Statement
    private let countOthers: Statement
    /// The highest number of a reading that could not be stored.
    private var unstored: Int64
    private var savedUnstored: Int64
    /// The highest number of an unstored reading that is no longer in memory.
    private var removedUnstored: Int64

    init(_ connection: SQLiteConnection, _ state: StateTable) throws(StoreFault) {
        self.state = state
        unstored = try state.value(of: .unstored)
        (savedUnstored, removedUnstored) = (unstored, unstored)
        selectReplaced = try Statement("SELECT after FROM epoch ORDER BY id DESC LIMIT 1", on: connection)
        let counts = ["event", "reject", "correction"].map {
            "(SELECT count(*) FROM \($0) WHERE id > ?1 AND id <= ?2)"
        }
        countOthers = try Statement("SELECT \(counts.joined(separator: " + "))", on: connection)
    }

    /// Returns a batch that was read after `seq`, up to the first lost numbers; if it begins with them, only these.
    ///
    /// - Parameters:
    ///   - batch: The entries.
    ///   - seq: The number after which they were read.
    ///   - dropped: The number up to which extents may be missing.
    /// - Returns: Entries without a loss among them, or a gap.
    /// - Throws: ``StoreFault`` if the file cannot be read.
    func cut(_ batch: JournalBatch, after seq: Int64, dropped: Int64) throws(StoreFault) -> JournalBatch {
        let marks = try marks(dropped: dropped)
        let end = marks.map(\.through).max() ?? 0
        guard seq < end else { return batch }
        var last = seq
        for (index, next) in (batch.entries.map(\.seq) + [batch.through + 1]).enumerated() where last < end {
            let through = min(next - 1, end)
            guard try isLost(after: last, through: through) else {
                last = next
                continue
            }
            guard index == 0 else { return JournalBatch(Array(batch.entries[..<index]), through: last) }
            let reason = marks.first { $0.through >= through }?.reason ?? ""
            return JournalBatch(missing: JournalGap(after: last, through: through, reason: reason))
        }
        return batch
    }

    /// True if some of the numbers are lost; `dropped` is the number up to which extents may be missing.
    func hasLost(after seq: Int64, through end: Int64, dropped: Int64) throws(StoreFault) -> Bool {
        let highest = try marks(dropped: dropped).map(\.through).max() ?? 0
        return try isLost(after: seq, through: min(end, highest))
    }

    /// The last number whose entry may never have been in this file.
    func lastAbsent() throws(StoreFault) -> Int64 { max(unstored, try lastReplaced()) }

    /// The last number of another file that this one continues.
    private func lastReplaced() throws(StoreFault) -> Int64 { try selectReplaced.firstInteger() ?? 0 }

    private func marks(dropped: Int64) throws(StoreFault) -> [Mark] {
        [
            (try state.value(of: .lastDeleted), "deleted by the limits of history"),
            (dropped, "dropped by the limits of the backlog"),
            (removedUnstored, "not stored because the disk failed"),
            (try lastReplaced(), "another file"),
        ]
    }

    /// True if some of the numbers belong to no event, reject or correction, which not all consumers get.
    private func isLost(after seq: Int64, through end: Int64) throws(StoreFault) -> Bool {
        guard seq < end else { return false }
        return try countOthers.firstInteger(binding: seq, end) ?? 0 < end - seq
    }

    // MARK: - Readings that could not be stored

    /// Records that readings up to this number are in memory only; saved with a later commit, for the next start.
    func addUnstored(through seq: Int64) { unstored = max(unstored, seq) }

    /// Records that these readings are not in memory any more.
    func removeUnstored(through seq: Int64) { removedUnstored = max(removedUnstored, seq) }

    var isSaveDue: Bool { unstored > savedUnstored }

    /// Writes the mark; only in a transaction.
    func save() throws(StoreFault) {
        if isSaveDue { try state.set(.unstored, to: unstored) }
    }

    func didSave() { savedUnstored = unstored }
}
