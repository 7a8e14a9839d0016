import GattherdModel

/// The readings that wait for delivery, as far as they take room.
final class Backlog {
    /// Readings that are given up at once.
    private static let chunk = 1024

    private let outbox: Outbox?
    private let meter: BacklogMeter
    private let saved: Int64
    private let limits: HistoryLimits
    private let select: Statement
    private let delete: Statement
    /// Nothing could go although it should, for delivery has taken all there is.
    private var isStuck = false
    private var isAgeDue = false
    private var deadline = Int64.min

    /// - Parameters:
    ///   - connection: The database.
    ///   - state: Knows the cursor while delivery is off.
    ///   - outbox: Delivery's; `nil` while it is off, when readings may still wait from before.
    ///   - meter: Counts the log's octets.
    ///   - limits: How long, and how many octets of them.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    init(
        _ connection: Connection,
        _ state: StateTable,
        _ outbox: Outbox?,
        _ meter: BacklogMeter,
        _ limits: HistoryLimits
    ) throws(StoreFault) {
        self.outbox = outbox
        self.meter = meter
        self.limits = limits
        saved = try state.value(of: .cursor)
        select = try Statement(
            "SELECT seq, ts, length(payload) FROM log WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            on: connection
        )
        delete = try Statement(
            "DELETE FROM log WHERE seq > ?1 AND seq <= ?2 RETURNING seq, length(payload)",
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

    /// Begins to look for readings that have waited for too long at the instant `now`.
    func beginPass(_ now: Int64) {
        isStuck = false
        guard let age = limits.backlogAge else { return }
        deadline = Timestamp(microseconds: now).advanced(by: .zero - age).microseconds
        isAgeDue = true
    }

    /// Does a little of what is due; gives the number of readings that were given up.
    func step() throws(StoreFault) -> Int {
        if isCountDue {
            try meter.count()
            return 0
        }
        let isTooLarge = excess > 0
        let count = try drop(through: lastToDrop())
        if count == 0 {
            isAgeDue = false
            isStuck = isTooLarge
        }
        return count
    }

    /// Gives up the oldest readings that nobody has taken; gives their number.
    func drop(count: Int) throws(StoreFault) -> Int {
        try drop(through: last(of: count) { _ in true })
    }

    /// Some more than are too many go at once, so that not every commit makes some go.
    private func lastToDrop() throws(StoreFault) -> Int64 {
        let slack = (limits.backlogSize ?? 0) / 256
        var excess = excess > 0 ? excess + slack : 0
        return try last(of: Self.chunk) { row in
            let isOld = isAgeDue && !row.isNull(1) && row.integer(1) < deadline
            guard isOld || excess > 0 else { return false }
            excess -= row.integer(2)
            return true
        }
    }

    /// The last of the oldest readings, at most `count`, that `isWanted` is true of.
    private func last(of count: Int, while isWanted: (borrowing Statement) -> Bool) throws(StoreFault) -> Int64 {
        var last = taken
        select.bind(last, at: 1)
        select.bind(Int64(count), at: 2)
        defer { select.reset() }
        while try select.step(), isWanted(select) { last = select.integer(0) }
        return last
    }

    private func drop(through last: Int64) throws(StoreFault) -> Int {
        let start = taken
        guard last > start else { return 0 }
        delete.bind(start, at: 1)
        delete.bind(last, at: 2)
        do throws(StoreFault) {
            let count = try meter.delete(delete)
            meter.adopt()
            return count
        } catch {
            meter.forget()
            throw error
        }
    }
}
