import GattherdModel

/// Deletes rows beyond the limits of age and size, and returns free space, a step at a time.
final class Retention {
    /// The number of rows per step, normally and while the file is too large.
    private static let chunk = 4096
    private static let largeChunk = 32_768
    /// The number of rows per used page that may be deleted per hour while the clock is in doubt: less than 1 %.
    private static let limitedShare = 0.32
    /// The longest time between two passes that counts for this rate, in microseconds.
    private static let longestPause: Int64 = 120_000_000

    /// The number of readings dropped before delivery since the file was opened.
    private(set) var undelivered = 0
    private let limits: HistoryLimits
    private let tables: [PurgeTable]
    private let lists: [BoundedRows]
    private let space: FileSpace
    private let rollups: Rollups
    private let backlog: Backlog
    /// The tables that the current pass has not finished.
    private var pass: [PurgeTable] = []
    private var part = 0
    private var place = Int64.min
    private var plan = AgePlan(proven: .min, latest: .min)
    private var lastPass = Int64.max
    /// The number of rows that slow deletion may delete now.
    private var allowance = 0.0
    /// True if the rate limit left rows for a later pass.
    private var isHeldBack = false
    /// True if the last pass left no row that is too old by the claimed time.
    private(set) var isCaughtUp = false
    /// The times of readings that were dropped from the backlog, whose samples are deleted next.
    private var dropped: ClosedRange<Int64>?
    private var waiting = WaitingSamples()
    /// The number of used pages when no row could be deleted.
    private var stuckAt: Int64?

    init(
        _ limits: HistoryLimits,
        _ connection: SQLiteConnection,
        _ state: StateTable,
        _ rollups: Rollups,
        _ backlog: Backlog
    ) throws(StoreFault) {
        self.limits = limits
        self.rollups = rollups
        self.backlog = backlog
        let tolerance = Int(min(256, (limits.pages ?? .max) / 64))
        space = try FileSpace(connection, step: min(256, limits.walPages / 2), tolerance: tolerance)
        tables = try PurgeTable.Kind.allCases.map { (kind) throws(StoreFault) in
            try PurgeTable(kind, connection, state)
        }
        lists = try [.events, .rejects].map { (kind) throws(StoreFault) in
            try BoundedRows(kind, limits.limit(of: kind), connection)
        }
        for table in tables { passPurgedTimes(table) }
    }

    /// The database's size in bytes.
    var size: Int64 { space.total * 4096 }

    /// True if there is work to do.
    var isDue: Bool {
        !pass.isEmpty || backlog.isDue || space.isShrinkDue || lists.contains(where: \.isExcessive) || excess > 0
    }

    /// Updates the size; call this after each commit.
    func didCommit() {
        space.didCommit()
    }

    /// Counts events and rejects again; call this after a commit that has added or deleted some.
    func didChangeLists() {
        for list in lists { list.recount() }
    }

    /// Starts a pass that deletes rows beyond their retention time.
    ///
    /// - Parameters:
    ///   - plan: The clocks by which rows age.
    ///   - uptime: The monotonic time.
    func startPass(_ plan: AgePlan, uptime: Int64) {
        stuckAt = nil
        space.invalidate()
        backlog.startPass(plan)
        if plan.isLimited { grantAllowance(uptime) } else { allowance = 0 }
        lastPass = uptime
        isCaughtUp = false
        guard pass.isEmpty || !plan.hasShape(of: self.plan) else { return }
        self.plan = plan
        isHeldBack = false
        pass = tables.reversed()
        (part, place) = (0, .min)
    }

    /// Ends the pass, because the clock has changed.
    func cancelPass() {
        waiting.removeAll()
        pass.removeAll()
        (part, place) = (0, .min)
    }

    /// Reads again the spans of time in which rows may have been deleted; call this after rows were moved, too.
    func readPurged() throws(StoreFault) {
        waiting.removeAll()
        for table in tables {
            try table.readPurged()
            passPurgedTimes(table)
        }
    }

    /// Corrects times of deleted rows that lie in the future of `now`, a trusted time; only in a transaction.
    ///
    /// Call ``readPurged()`` after the commit.
    func limitPurged(to now: Int64) throws(StoreFault) {
        for table in tables { try table.limitPurged(to: now) }
    }

    /// Grants rows for slow deletion by the time since the last pass; longer pauses do not accumulate.
    private func grantAllowance(_ uptime: Int64) {
        let hourly = Double(space.used) * Self.limitedShare
        let hours = Double(min(max(0, uptime &- lastPass), Self.longestPause)) / Double(Resolution.hours.length)
        allowance = min(hourly, allowance + hourly * hours)
    }

    /// Runs one step of the work.
    ///
    /// - Parameter newest: The latest time of a sample.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func step(_ newest: Int64) throws(StoreFault) {
        space.invalidate()
        defer { space.invalidate() }
        if space.isShrinkDue { return try space.shrink() }
        if backlog.isDue {
            undelivered += try backlog.step()
            return
        }
        if let list = lists.first(where: \.isExcessive) { return try list.shorten() }
        if excess > 0 { return try makeRoom(newest) }
        try passOn(newest)
    }

    // MARK: - Age

    private func passOn(_ newest: Int64) throws(StoreFault) {
        guard let table = pass.last else { return }
        guard part < plan.parts.count else {
            pass.removeLast()
            (part, place) = (0, .min)
            if pass.isEmpty { isCaughtUp = plan.isLimited && !isHeldBack }
            return
        }
        if try !purge(table, plan.parts[part], newest) { (part, place) = (part + 1, .min) }
    }

    /// Deletes some of a part's old rows; returns true if there may be more.
    private func purge(_ table: PurgeTable, _ part: AgePlan.Part, _ newest: Int64) throws(StoreFault) -> Bool {
        guard let keep = limits.keep(table.kind) else { return false }
        let age = Timestamp(microseconds: part.now).advanced(by: .zero - keep).microseconds
        var end = min(age, table.kind.end(of: part.times))
        var start = max(place, part.times.lowerBound == .min ? .min : part.times.lowerBound - 1)
        if table.kind == .samples { start = waiting.start(after: start, waitingState) }
        let spared = part.isPending ? PurgeTable.Spared() : sparedSamples(keep)
        guard try table.hasRow(after: start, before: end, spared: spared) else { return false }
        // A clock in doubt must not move the marks beyond the stored rows.
        let summedEnd = part.isLimited ? min(end, newest) : end
        if table.kind == .samples, rollups.minuteMark < end, try rollups.sumUpEarly(summedEnd) { return true }
        end = min(end, bound(of: table))
        let count = part.isLimited ? min(Self.chunk, Int(allowance)) : Self.chunk
        guard count > 0 else {
            isHeldBack = true
            return false
        }
        let outcome = try table.purge(
            after: start,
            before: end,
            count: count,
            latest: plan.latest,
            isPending: part.isPending,
            delivered: backlog.delivered,
            spared: spared
        )
        if part.isLimited { allowance -= Double(max(outcome.deleted, outcome.reached == nil ? 0 : count)) }
        passPurgedTimes(table)
        didChangeLists()
        place = outcome.reached ?? place
        if table.kind == .samples {
            waiting.add(after: start, through: outcome.reached ?? end.subtractingReportingOverflow(1).partialValue)
        }
        return outcome.reached != nil
    }

    /// Samples in no pending span that are too old only by another clock than the one that stamped them.
    private func sparedSamples(_ keep: Duration) -> PurgeTable.Spared {
        let start = Timestamp(microseconds: plan.pendingNow).advanced(by: .zero - keep).microseconds
        return PurgeTable.Spared(seq: plan.pendingSeq, start: start)
    }

    /// The state of the waiting samples; `nil` without consumers, because no sample waits then.
    private var waitingState: WaitingSamples.State? {
        backlog.hasConsumers ? WaitingSamples.State(delivered: backlog.delivered, dropped: undelivered) : nil
    }

    /// Returns the first instant whose rows are not summarised.
    private func bound(of table: PurgeTable) -> Int64 {
        switch table.kind {
        case .samples: rollups.minuteMark
        case .minutes: rollups.hourMark
        case .hours, .events, .rejects: .max
        }
    }

    // MARK: - Size

    /// The number of surplus pages for which rows may be deleted.
    private var excess: Int64 {
        guard let limit = limits.pages else { return 0 }
        let used = space.used
        if let stuckAt, used <= stuckAt + 64 { return 0 }
        return max(0, used + spare - limit)
    }

    /// The number of pages kept free for future events and rejects, so that these never evict samples.
    private var spare: Int64 {
        max(0, limits.listPages - HistoryLimits.pages(lists.reduce(0) { $0 + $1.bytes }))
    }

    private func makeRoom(_ newest: Int64) throws(StoreFault) {
        let chunk = excess > 64 ? Self.largeChunk : Self.chunk
        for row in try byAge(newest) where try shorten(row, chunk, newest) { return }
        stuckAt = space.used
    }

    /// The oldest row of a table, and the times in which the table's rows are deleted first.
    private struct OldestRow {
        var table: PurgeTable
        var times: Range<Int64>
        var ts: Int64
        /// The time now, by the clock that stamped the row.
        var now: Int64
    }

    /// The oldest rows of the tables of samples and summaries, ordered by their age relative to the retention time.
    private func byAge(_ newest: Int64) throws(StoreFault) -> [OldestRow] {
        var aged: [(row: OldestRow, age: Double)] = []
        for table in tables where ![.events, .rejects].contains(table.kind) {
            guard let row = try oldestRow(of: table, newest) else { continue }
            let weight = limits.weight(table.kind) / .microseconds(1)
            aged.append((row, (Double(row.now) - Double(row.ts)) / weight))
        }
        return aged.sorted { $0.age > $1.age }.map(\.row)
    }

    /// Returns the oldest row; among samples the one with the lowest number, regardless of its time.
    private func oldestRow(of table: PurgeTable, _ newest: Int64) throws(StoreFault) -> OldestRow? {
        guard table.kind == .samples else {
            guard let ts = try table.oldest() else { return nil }
            return OldestRow(table: table, times: .min ..< .max, ts: ts, now: now(at: ts, newest))
        }
        var oldest: (row: OldestRow, seq: Int64)?
        for times in regions {
            guard let first = try table.first(in: times), first.seq < oldest?.seq ?? .max else { continue }
            let row = OldestRow(table: table, times: times, ts: first.ts, now: now(at: first.ts, newest))
            oldest = (row, first.seq)
        }
        return oldest?.row
    }

    /// The time ranges in which samples are stored in the order of their arrival.
    ///
    /// Times in the future are a range of their own.
    private var regions: [Range<Int64>] {
        let future =
            plan.proven == .min ? .max : plan.proven.addingReportingOverflow(Resolution.hours.length).partialValue
        return plan.regions.map(\.times).flatMap { times in
            guard times.upperBound == .max, times.contains(future) else { return [times] }
            return [times.lowerBound..<future, future..<times.upperBound]
        }
    }

    private func now(at ts: Int64, _ newest: Int64) -> Int64 {
        let pending = plan.regions.first { $0.isPending && $0.times.contains(ts) }
        return pending?.now ?? max(plan.latest, newest)
    }

    /// Returns true if rows were deleted.
    private func shorten(_ oldest: OldestRow, _ chunk: Int, _ newest: Int64) throws(StoreFault) -> Bool {
        let table = oldest.table
        let start = oldest.times.lowerBound == .min ? .min : oldest.times.lowerBound - 1
        let bound = min(bound(of: table), oldest.times.upperBound)
        let end = min(bound, firstPart(of: oldest, newest))
        let isPending = plan.regions.contains { $0.isPending && $0.times.contains(oldest.ts) }
        func purge(after start: Int64, before end: Int64) throws(StoreFault) -> PurgeTable.Outcome {
            try table.purge(
                after: start,
                before: end,
                count: chunk,
                latest: plan.latest,
                isPending: isPending,
                delivered: backlog.delivered
            )
        }
        let deleted = try purge(after: start, before: end).deleted
        passPurgedTimes(table)
        if deleted > 0 { return true }
        guard table.kind == .samples else { return false }
        if let times = dropped {
            // Samples that outputs hold may be before those of the dropped readings, more than a chunk of them.
            let outcome = try purge(
                after: times.lowerBound.subtractingReportingOverflow(1).partialValue,
                before: min(bound, times.upperBound.addingReportingOverflow(1).partialValue)
            )
            dropped = outcome.reached.flatMap { $0 < times.upperBound ? ($0 + 1)...times.upperBound : nil }
            return true
        }
        let outcome = try purge(after: start, before: bound)
        if outcome.deleted > 0 { return true }
        if outcome.reached == nil, try rollups.sumUpEarly(newest) { return true }
        let (count, times) = try backlog.drop(count: chunk / 4)
        (undelivered, dropped) = (undelivered + count, times)
        return count > 0
    }

    /// Returns the end of the first sixteenth of the table's time span, so that a small table is not deleted as a
    /// whole.
    private func firstPart(of oldest: OldestRow, _ newest: Int64) -> Int64 {
        let span = Double(max(oldest.now, newest)) - Double(oldest.ts)
        return oldest.ts.addingReportingOverflow(Int64(max(1, span / 16))).partialValue
    }

    /// Passes on the purged times, so that late samples do not recreate a deleted summary.
    private func passPurgedTimes(_ table: PurgeTable) {
        switch table.kind {
        case .minutes: rollups.purgedMinutes = table.purged
        case .hours: rollups.purgedHours = table.purged
        case .samples, .rejects, .events: break
        }
    }
}
