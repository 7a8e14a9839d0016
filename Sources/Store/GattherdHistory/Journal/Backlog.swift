import GattherdModel

/// The undelivered readings and the space that they use.
final class Backlog {
    /// The number of extents that are dropped at once.
    private static let chunk = 1024

    private let connection: SQLiteConnection
    private let state: StateTable
    private let journal: Journal?
    private let meter: BacklogMeter
    private let saved: Int64
    private let limits: HistoryLimits
    private let select: Statement
    private let delete: Statement
    private let leaveOut: Statement
    /// True if nothing could be dropped because delivery holds all extents.
    private var isStuck = false
    private var isAgeDue = false
    private var deadline = Int64.min
    /// The deadline of readings in pending clock spans.
    private var pendingDeadline = Int64.min
    private var pendingSeq = Int64.max

    /// - Parameters:
    ///   - connection: The database.
    ///   - state: The named integers in the file.
    ///   - saved: The lowest cursor in the file, for the time without consumers.
    ///   - journal: The delivery's journal; `nil` while delivery is off, when older readings may still wait.
    ///   - meter: The counter of undelivered bytes.
    ///   - limits: The limits of waiting time and bytes.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    init(
        _ connection: SQLiteConnection,
        _ state: StateTable,
        saved: Int64,
        _ journal: Journal?,
        _ meter: BacklogMeter,
        _ limits: HistoryLimits
    ) throws(StoreFault) {
        (self.connection, self.state) = (connection, state)
        self.journal = journal
        self.meter = meter
        self.limits = limits
        self.saved = saved
        select = try Statement(
            """
            SELECT first, last, arrived, octets, ts, ts_last FROM outbox WHERE first > ?1
            ORDER BY first LIMIT \(Self.chunk)
            """,
            on: connection
        )
        delete = try Statement(
            "DELETE FROM outbox WHERE first > ?1 AND first <= ?2 RETURNING first, octets",
            on: connection
        )
        leaveOut = try Statement(RewindScan.leaveOut, on: connection)
    }

    /// False while delivery is off.
    var hasConsumers: Bool { journal != nil }

    /// The last reading that all consumers have acknowledged.
    var delivered: Int64 { journal?.delivered ?? saved }

    /// The last reading that all consumers have received, which is delivered even if it is dropped here.
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
    /// - Returns: The number of dropped readings, and the times of their samples.
    /// - Throws: ``StoreFault`` if the file cannot be written.
    func drop(count: Int) throws(StoreFault) -> (count: Int, times: ClosedRange<Int64>?) {
        var left = Int64(count)
        return try drop { row in
            defer { left -= Extent.count(row) }
            return left > 0
        }
    }

    /// Drops slightly more than the surplus, so that not every commit has to drop some.
    private func dropTooMany() throws(StoreFault) -> Int {
        let slack = (limits.backlogSize ?? 0) / 256
        var excess = excess > 0 ? excess + slack : 0
        let dropped = try drop { row in
            let deadline = row.integer(1) > pendingSeq ? pendingDeadline : deadline
            guard excess > 0 || isAgeDue && row.integer(2) < deadline else { return false }
            excess -= Extent.bytes(row, 3)
            return true
        }
        return dropped.count
    }

    /// Drops the oldest extents of which nothing was handed over, while `isWanted` returns true.
    private func drop(
        while isWanted: (borrowing Statement) -> Bool
    ) throws(StoreFault) -> (count: Int, times: ClosedRange<Int64>?) {
        let start = handedOver
        let oldest = try oldest(after: start, while: isWanted)
        if oldest.count > 0 { try delete(after: start, oldest) }
        return (oldest.count, oldest.times)
    }

    /// The oldest extents that are dropped at once.
    private struct Oldest {
        /// The number of the first reading of the last extent.
        var first: Int64 = 0
        /// The number of the last reading of the last extent.
        var last: Int64 = 0
        /// The number of readings.
        var count = 0
        /// The times of their samples.
        var times: ClosedRange<Int64>?
    }

    /// Returns the extents for which `isWanted` is true.
    private func oldest(
        after start: Int64,
        while isWanted: (borrowing Statement) -> Bool
    ) throws(StoreFault) -> Oldest {
        var oldest = Oldest()
        select.bind(start)
        defer { select.reset() }
        while try select.step(), isWanted(select) {
            (oldest.first, oldest.last) = (select.integer(0), select.integer(1))
            oldest.count += Int(Extent.count(select))
            let (earliest, latest) = (select.integer(4), select.integer(5))
            let times = min(earliest, oldest.times?.lowerBound ?? earliest)...max(latest, earliest)
            oldest.times = times.lowerBound...max(times.upperBound, oldest.times?.upperBound ?? times.upperBound)
        }
        return oldest
    }

    /// Deletes the extents, and records up to where extents are missing.
    private func delete(after start: Int64, _ oldest: Oldest) throws(StoreFault) {
        do throws(StoreFault) {
            try connection.transaction { () throws(StoreFault) in
                delete.bind(start, oldest.first)
                try meter.delete(delete)
                try leaveOut.run(binding: oldest.last)
                try state.set(.journalFrom, to: max(oldest.last, state.value(of: .journalFrom)))
            }
        } catch {
            meter.didRollBack()
            throw error
        }
        meter.didCommit()
        try journal?.readStart()
    }
}
