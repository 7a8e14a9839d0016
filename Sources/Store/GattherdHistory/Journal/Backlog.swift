import GattherdModel

/// The readings that wait for delivery, as far as they take room.
final class Backlog {
    /// Extents that are given up at once.
    private static let chunk = 1024

    private let outbox: Journal?
    private let meter: BacklogMeter
    private let saved: Int64
    private let limits: HistoryLimits
    private let select: Statement
    private let delete: Statement
    /// True if nothing could be dropped because delivery holds all extents.
    private var isStuck = false
    private var isAgeDue = false
    private var deadline = Int64.min
    /// For readings of a span whose clock is not known to be right.
    private var pendingDeadline = Int64.min
    private var pendingSeq = Int64.max

    /// - Parameters:
    ///   - connection: The database.
    ///   - state: Knows the cursor while delivery is off.
    ///   - outbox: Delivery's; `nil` while it is off, when readings may still wait from before.
    ///   - meter: Counts the bytes of what waits.
    ///   - limits: How long, and how many bytes of them.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    init(
        _ connection: SQLiteConnection,
        _ state: StateTable,
        _ outbox: Journal?,
        _ meter: BacklogMeter,
        _ limits: HistoryLimits
    ) throws(StoreFault) {
        self.outbox = outbox
        self.meter = meter
        self.limits = limits
        saved = try state.value(of: .cursor)
        select = try Statement(
            "SELECT first, last, ts_last, octets FROM outbox WHERE first > ?1 ORDER BY first LIMIT \(Self.chunk)",
            on: connection
        )
        delete = try Statement(
            "DELETE FROM outbox WHERE first > ?1 AND first <= ?2 RETURNING first, octets",
            on: connection
        )
    }

    /// The last reading that was delivered.
    var delivered: Int64 { outbox?.cursor ?? saved }

    /// The last reading that delivery has taken, and will deliver whatever becomes of it here.
    var taken: Int64 { max(delivered, outbox?.taken ?? 0) }

    /// True when readings may have to go for a limit of their own.
    var isDue: Bool { isCountDue || isAgeDue || (excess > 0 && !isStuck) }

    private var isCountDue: Bool { limits.backlogSize != nil && !meter.isExact }

    /// Octets that are too many; what is delivered but not deleted yet does not count.
    private var excess: Int64 {
        guard let limit = limits.backlogSize, meter.isExact, outbox?.isSaveDue != true else { return 0 }
        return meter.octets - limit
    }

    /// Begins to look for readings that have waited for too long.
    func beginPass(_ plan: AgePlan) {
        isStuck = false
        guard let age = limits.backlogAge else { return }
        deadline = Timestamp(microseconds: plan.proven).advanced(by: .zero - age).microseconds
        pendingDeadline = Timestamp(microseconds: plan.pendingNow).advanced(by: .zero - age).microseconds
        pendingSeq = plan.pendingSeq
        isAgeDue = true
    }

    /// Does a little of what is due; gives the number of readings that were given up.
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

    /// Gives up the oldest readings that nobody has taken, whole extents of them.
    ///
    /// - Parameter count: So many should go; some more do, and fewer when there are not so many.
    /// - Returns: How many went.
    /// - Throws: ``StoreFault`` when the file cannot be written.
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

    /// Gives up the oldest extents that nobody has taken anything of, as long as `isWanted` is true of them.
    private func drop(while isWanted: (borrowing Statement) -> Bool) throws(StoreFault) -> Int {
        let start = taken
        let (last, count) = try oldest(after: start, while: isWanted)
        if count > 0 { try delete(after: start, through: last) }
        return count
    }

    /// The `first` of the last extent that `isWanted` is true of, and the readings up to there.
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
            meter.adopt()
        } catch {
            meter.forget()
            throw error
        }
    }
}
