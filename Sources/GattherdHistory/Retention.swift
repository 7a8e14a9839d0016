import GattherdModel

/// Deletes what is too old or too much, and gives the space back, a step at a time.
final class Retention {
    /// Rows that are looked at in one step, and in one when the file is too large already.
    private static let chunk = 4096
    private static let largeChunk = 32_768

    /// Readings that were given up before anybody got them, since the file was opened.
    private(set) var undelivered = 0
    private let limits: HistoryLimits
    private let tables: [PurgeTable]
    private let space: FileSpace
    private let rollups: Rollups
    private let backlog: Backlog
    /// What is still to be looked through for what is too old.
    private var pass: [PurgeTable] = []
    private var place = Int64.min
    private var now = Int64.min
    /// Pages in use when nothing could be found that may go.
    private var stuckAt: Int64?

    init(
        _ limits: HistoryLimits,
        _ connection: Connection,
        _ state: StateTable,
        _ rollups: Rollups,
        _ backlog: Backlog
    ) throws(StoreFault) {
        self.limits = limits
        self.rollups = rollups
        self.backlog = backlog
        let tolerance = Int(min(256, (limits.pages ?? .max) / 64))
        space = try FileSpace(connection, step: min(256, limits.logPages / 2), tolerance: tolerance)
        tables = try PurgeTable.Kind.allCases.map { (kind) throws(StoreFault) in
            try PurgeTable(kind, connection, state)
        }
        for table in tables { tellRollups(table) }
    }

    /// The database's size in octets.
    var size: Int64 { space.total * 4096 }

    /// True when there is something to do.
    var isDue: Bool { !pass.isEmpty || backlog.isDue || space.isShrinkDue || excess > 0 }

    /// To be called after each commit.
    func didCommit() {
        space.didCommit()
    }

    /// Begins to look for what is too old at the instant `now`.
    func beginPass(_ now: Int64) {
        self.now = now
        stuckAt = nil
        space.forget()
        backlog.beginPass(now)
        guard pass.isEmpty else { return }
        pass = tables.reversed()
        place = .min
    }

    /// Does a little of what is to be done.
    ///
    /// - Parameter newest: The latest time of a sample.
    /// - Throws: ``StoreFault`` when the file cannot be written.
    func step(_ newest: Int64) throws(StoreFault) {
        space.forget()
        defer { space.forget() }
        if space.isShrinkDue { return try space.shrink() }
        if backlog.isDue {
            undelivered += try backlog.step()
            return
        }
        if excess > 0 { return try makeRoom(newest) }
        try passOn()
    }

    // MARK: - Age

    private func passOn() throws(StoreFault) {
        guard let table = pass.last else { return }
        guard try table.purgeSurplus(count: Self.chunk) < Self.chunk else { return }
        var reached: Int64?
        if let end = try end(of: table) {
            if table.kind == .samples, rollups.minuteMark < end, try rollups.sumUpEarly(end) { return }
            let end = min(end, bound(of: table))
            reached = try table.purge(after: place, before: end, count: Self.chunk, delivered: backlog.delivered)
                .reached
            tellRollups(table)
        }
        place = reached ?? .min
        if reached == nil { pass.removeLast() }
    }

    /// Where the rows end that are too old; `nil` when there are none.
    private func end(of table: PurgeTable) throws(StoreFault) -> Int64? {
        guard let keep = limits.keep(table.kind), let oldest = try table.oldest() else { return nil }
        let end = Timestamp(microseconds: now).advanced(by: .zero - keep).microseconds
        return oldest < end ? end : nil
    }

    /// Where rows begin that have not been summed up.
    private func bound(of table: PurgeTable) -> Int64 {
        switch table.kind {
        case .samples: rollups.minuteMark
        case .minutes: rollups.hourMark
        case .hours, .events, .rejects: .max
        }
    }

    // MARK: - Size

    /// Pages that are too many, as far as something may go for them.
    private var excess: Int64 {
        guard let limit = limits.pages else { return 0 }
        let used = space.used
        if let stuckAt, used <= stuckAt + 64 { return 0 }
        return max(0, used - limit)
    }

    private func makeRoom(_ newest: Int64) throws(StoreFault) {
        let chunk = excess > 64 ? Self.largeChunk : Self.chunk
        for table in try byAge(max(now, newest)) where try shorten(table, chunk, newest) { return }
        stuckAt = space.used
    }

    /// The tables that are not empty, first that which is oldest for what it should be.
    private func byAge(_ now: Int64) throws(StoreFault) -> [PurgeTable] {
        var aged: [(table: PurgeTable, age: Double)] = []
        for table in tables {
            guard let oldest = try table.oldest() else { continue }
            let weight = limits.weight(table.kind) / .microseconds(1)
            aged.append((table, (Double(now) - Double(oldest)) / weight))
        }
        return aged.sorted { $0.age > $1.age }.map(\.table)
    }

    /// True when something went.
    private func shorten(_ table: PurgeTable, _ chunk: Int, _ newest: Int64) throws(StoreFault) -> Bool {
        guard let oldest = try table.oldest() else { return false }
        let bound = bound(of: table)
        let end = min(bound, firstPart(from: oldest, newest))
        let delivered = backlog.delivered
        let deleted = try table.purge(before: end, count: chunk, delivered: delivered).deleted
        tellRollups(table)
        if deleted > 0 { return true }
        guard table.kind == .samples else { return false }
        let outcome = try table.purge(before: bound, count: chunk, delivered: delivered)
        if outcome.deleted > 0 { return true }
        if outcome.reached == nil, try rollups.sumUpEarly(newest) { return true }
        let dropped = try backlog.drop(count: chunk / 4)
        undelivered += dropped
        return dropped > 0
    }

    /// Where the first sixteenth of the time since `oldest` ends: a small table does not go as a whole.
    private func firstPart(from oldest: Int64, _ newest: Int64) -> Int64 {
        let span = Double(max(now, newest)) - Double(oldest)
        return oldest.addingReportingOverflow(Int64(max(1, span / 16))).partialValue
    }

    /// What comes late for a summary that is gone must not begin it anew.
    private func tellRollups(_ table: PurgeTable) {
        switch table.kind {
        case .minutes: rollups.minutesGone = table.mark
        case .hours: rollups.hoursGone = table.mark
        case .samples, .rejects, .events: break
        }
    }
}
