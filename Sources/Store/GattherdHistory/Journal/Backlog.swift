import GattherdModel

/// The undelivered readings and the space that they use.
final class Backlog {
    /// The number of extents that are dropped at once.
    private static let chunk = 1024

    private let journal: Journal?
    private let meter: BacklogMeter
    private let saved: Int64
    private let limits: HistoryLimits
    private let select: Statement
    private let delete: Statement
    /// True if nothing could be dropped because delivery holds all extents.
    private var isStuck = false
    private var isAgeDue = false
    private var deadline = Int64.min
    /// The deadline of readings in pending clock spans.
    private var pendingDeadline = Int64.min
    private var pendingSeq = Int64.max

    /// - Parameters:
    ///   - connection: The database.
    ///   - saved: The lowest cursor in the file, for the time without consumers.
    ///   - journal: The delivery's journal; `nil` while delivery is off, when older readings may still wait.
    ///   - meter: The counter of undelivered bytes.
    ///   - limits: The limits of waiting time and bytes.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    init(
        _ connection: SQLiteConnection,
        saved: Int64,
        _ journal: Journal?,
        _ meter: BacklogMeter,
        _ limits: HistoryLimits
    ) throws(StoreFault) {
        self.journal = journal
        self.meter = meter
        self.limits = limits
        self.saved = saved
        select = try Statement(
            "SELECT first, last, ts_last, octets FROM outbox WHERE first > ?1 ORDER BY first LIMIT \(Self.chunk)",
            on: connection
        )
        delete = try Statement(
            "DELETE FROM outbox WHERE first > ?1 AND first <= ?2 RETURNING first, octets",
            on: connection
        )
    }

    /// The last reading that all consumers have acknowledged.
    var delivered: Int64 { journal?.delivered ?? saved }

    /// The last reading that all consumers have got, which is delivered even if it is dropped here.
    var handedOver: Int64 { max(delivered, journal?.handedOver ?? 0) }

    /// True if the backlog's own limits may require dropping readings.
    var isDue: Bool { isCountDue || isAgeDue || (excess > 0 && !isStuck) }

    private var isCountDue: Bool { limits.backlogSize != nil && !meter.isExact }

    /// The surplus bytes, without delivered readings that are not deleted yet.
    private var excess: Int64 {
        guard let limit = limits.backlogSize, meter.isExact, journal?.isTrimDue != true else { return 0 }
        return meter.bytes - limit
    }

    /// Starts a search for readings that have waited for too long.
    func startPass(_ plan: AgePlan) {
        isStuck = false
        guard let age = limits.backlogAge else { return }
        deadline = Timestamp(microseconds: plan.proven).advanced(by: .zero - age).microseconds
        pendingDeadline = Timestamp(microseconds: plan.pendingNow).advanced(by: .zero - age).microseconds
        pendingSeq = plan.pendingSeq
        isAgeDue = true
    }

    /// Runs one step of due work; returns the number of dropped readings.
    func step() throws(StoreFault) -> Int {
        if isCountDue {
            try meter.count()
            return 0
        }
        let isTooLarge = excess > 0
        let count = try dropTooMany()
        if count == 0 {
            isAgeDue = false
            isStuck = isTooLarge
        }
        return count
    }

    /// Drops whole extents of the oldest readings that were not handed over.
    ///
    /// - Parameter count: The wanted number; whole extents may make it larger, a short backlog smaller.
    /// - Returns: The number of dropped readings.
    /// - Throws: ``StoreFault`` if the file cannot be written.
    func drop(count: Int) throws(StoreFault) -> Int {
        var left = Int64(count)
        return try drop { row in
            defer { left -= row.integer(1) - row.integer(0) + 1 }
            return left > 0
        }
    }

    /// Drops slightly more than the surplus, so that not every commit has to drop some.
    private func dropTooMany() throws(StoreFault) -> Int {
        let slack = (limits.backlogSize ?? 0) / 256
        var excess = excess > 0 ? excess + slack : 0
        return try drop { row in
            let deadline = row.integer(1) > pendingSeq ? pendingDeadline : deadline
            guard excess > 0 || isAgeDue && row.integer(2) < deadline else { return false }
            excess -= row.integer(3)
            return true
        }
    }

    /// Drops the oldest extents of which nothing was handed over, while `isWanted` returns true.
    private func drop(while isWanted: (borrowing Statement) -> Bool) throws(StoreFault) -> Int {
        let start = handedOver
        let (last, count) = try oldest(after: start, while: isWanted)
        if count > 0 { try delete(after: start, through: last) }
        return count
    }

    /// Returns the `first` of the last extent for which `isWanted` is true, and the number of readings up to there.
    private func oldest(
        after start: Int64,
        while isWanted: (borrowing Statement) -> Bool
    ) throws(StoreFault) -> (last: Int64, count: Int) {
        var last = start
        var count: Int64 = 0
        select.bind(start)
        defer { select.reset() }
        while try select.step(), isWanted(select) {
            last = select.integer(0)
            count += select.integer(1) - last + 1
        }
        return (last, Int(count))
    }

    private func delete(after start: Int64, through last: Int64) throws(StoreFault) {
        delete.bind(start, last)
        do throws(StoreFault) {
            try meter.delete(delete)
            meter.didCommit()
        } catch {
            meter.didRollBack()
            throw error
        }
    }
}
