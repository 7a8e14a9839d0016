import GattherdModel

/// The resolution of a table of numbers; each summary is made from the rows of the finer resolution.
enum Resolution: CaseIterable {
    case samples
    case minutes
    case hours

    /// The time span of a row, in microseconds.
    var length: Int64 {
        switch self {
        case .samples: 1
        case .minutes: 60_000_000
        case .hours: 3_600_000_000
        }
    }

    var table: String {
        switch self {
        case .samples: "sample"
        case .minutes: "minute"
        case .hours: "hour"
        }
    }

    /// The finer resolution from which this one is summarised; `nil` for samples.
    var finer: Resolution? {
        switch self {
        case .samples: nil
        case .minutes: .samples
        case .hours: .minutes
        }
    }

    /// Returns the coarsest resolution whose rows fill spans of `step` microseconds.
    init(for step: Int64) {
        self = [.hours, .minutes].first { step.isMultiple(of: $0.length) } ?? .samples
    }

    /// All rows of the table, ordered by time.
    var rows: OrderedRows {
        switch self {
        case .samples: OrderedRows(sql: select, last: Self.lastSample)
        case .minutes, .hours:
            OrderedRows(
                sql: select,
                last: "SELECT ts, quantity, 0 FROM \(table) WHERE ts < ?1 ORDER BY ts DESC, quantity DESC LIMIT 1"
            )
        }
    }

    /// Selects the position of the last sample before the instant ?1.
    static let lastSample = """
        SELECT ts, seq, ix FROM sample WHERE ts < ?1 ORDER BY ts DESC, seq DESC, ix DESC LIMIT 1
        """

    /// Selects at most ?4 rows after the position ?1, ?2, ?3 and before the instant ?5, in order.
    ///
    /// The columns are those of ``NumberRow``. `CROSS JOIN` keeps SQLite from reordering: samples are walked by
    /// time.
    var select: String {
        switch self {
        case .samples:
            """
            SELECT ts, seq, ix, quantity, 1, value, value, value
            FROM sample CROSS JOIN metric_series AS series ON series.id = sample.series
            WHERE (ts, seq, ix) > (?1, ?2, ?3) AND ts < ?5 ORDER BY ts, seq, ix LIMIT ?4
            """
        case .minutes, .hours:
            """
            SELECT ts, quantity, 0, quantity, n, sum, min, max FROM \(table)
            WHERE (ts, quantity, 0) > (?1, ?2, ?3) AND ts < ?5 ORDER BY ts, quantity LIMIT ?4
            """
        }
    }
}

/// A position between two rows of a table that is ordered by time.
struct RowPosition: Comparable {
    var ts: Int64
    var second: Int64
    var third: Int64

    /// Creates the position before all rows at `ts` and later.
    init(before ts: Int64) {
        self.ts = ts
        second = .min
        third = .min
    }

    /// Creates the position just after the statement's current row, whose first three columns are its key.
    init(behind row: borrowing Statement) {
        ts = row.integer(0)
        second = row.integer(1)
        third = row.integer(2)
    }

    static func < (left: Self, right: Self) -> Bool {
        (left.ts, left.second, left.third) < (right.ts, right.second, right.third)
    }
}

/// A row of any resolution: some numbers of one quantity.
struct NumberRow {
    let ts: Int64
    let quantity: Int64
    /// The numbers of the row; `nil` for a label or an unknown value.
    let numbers: NumberSummary?

    /// Reads the columns of ``Resolution/select(where:)``.
    init(_ row: borrowing Statement) {
        ts = row.integer(0)
        quantity = row.integer(3)
        numbers = NumberSummary(n: row.integer(4), sum: row.real(5), min: row.value(6), max: row.value(7))
    }
}

extension Int64 {
    /// The greatest multiple of `step` that is not greater than this number, if it is representable.
    func rounded(downTo step: Int64) -> Int64 {
        let rest = self % step
        let (rounded, overflow) = subtractingReportingOverflow(rest < 0 ? rest + step : rest)
        return overflow ? self : rounded
    }

    /// The smallest multiple of `step` that is not less than this number, if it is representable.
    func rounded(upTo step: Int64) -> Int64 {
        let below = rounded(downTo: step)
        let (above, overflow) = below.addingReportingOverflow(step)
        return below == self || overflow ? self : above
    }
}
