import GattherdModel

/// Maintains one table of summaries: summarises finer rows in slices once their span is over.
///
/// The table covers everything before ``mark`` and nothing after it. Both change in one transaction, so that no row
/// is counted twice or omitted. Views and readers use the finer rows after the mark. A commit therefore costs nothing
/// here unless it has rows from before the mark.
final class Rollup {
    /// The number of finer rows per slice.
    private static let slice = 8192

    private struct Row {
        let ts: Int64
        let quantity: Int64
        let numbers: NumberSummary
    }

    let resolution: Resolution
    /// The first instant that the table does not cover, in microseconds since 1970.
    private(set) var mark: Int64
    /// The partial sums of the current span, by quantity.
    private var open: [Int64: NumberSummary] = [:]
    private var span: Int64
    private var place: RowPosition
    private let connection: SQLiteConnection
    private let state: StateTable
    private let key: StateTable.Key
    private let select: Statement
    private let upsert: Statement
    private let delete: Statement
    private let deleteFrom: Statement
    private let reduce: Statement
    private let deleteEmpty: Statement

    /// The first instant that has not been read.
    var end: Int64 { place.ts }

    init(
        _ resolution: Resolution,
        of finer: Resolution,
        mark key: StateTable.Key,
        _ connection: SQLiteConnection,
        _ state: StateTable
    ) throws(StoreFault) {
        self.resolution = resolution
        self.connection = connection
        self.state = state
        self.key = key
        mark = try state.value(of: key)
        span = mark
        place = RowPosition(before: mark)
        select = try Statement(finer.select, on: connection)
        delete = try Statement("DELETE FROM \(resolution.table) WHERE ts = ?1", on: connection)
        deleteFrom = try Statement("DELETE FROM \(resolution.table) WHERE ts >= ?1", on: connection)
        reduce = try Statement(
            "UPDATE \(resolution.table) SET n = n - ?3, sum = sum - ?4 WHERE ts = ?1 AND quantity = ?2",
            on: connection
        )
        deleteEmpty = try Statement(
            "DELETE FROM \(resolution.table) WHERE ts = ?1 AND quantity = ?2 AND n <= 0",
            on: connection
        )
        upsert = try Statement(
            """
            INSERT INTO \(resolution.table) (ts, quantity, n, sum, min, max) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (ts, quantity) DO UPDATE SET n = n + excluded.n, sum = sum + excluded.sum,
                min = min(min, excluded.min), max = max(max, excluded.max)
            """,
            on: connection
        )
    }

    /// True if spans before `end` are missing in the table.
    func isBehind(_ end: Int64) -> Bool {
        mark < end.rounded(downTo: resolution.length)
    }

    /// Summarises at most one slice of finer rows of the spans that are over at `end`.
    func step(before end: Int64) throws(StoreFault) {
        let end = end.rounded(downTo: resolution.length)
        guard mark < end else { return }
        do throws(StoreFault) {
            var rows: [Row] = []
            let isComplete = try gather(before: end, into: &rows)
            let next = isComplete ? end : span
            guard next > mark else { return }
            try connection.transaction { () throws(StoreFault) in
                for row in rows { try merge(row) }
                try state.set(key, to: next)
            }
            mark = next
            if isComplete { place = RowPosition(before: end) }
        } catch {
            rewind()
            throw error
        }
    }

    /// Adds numbers of finer rows before the read position; only in a transaction.
    ///
    /// Newer rows are read in turn. If it is unclear whether a row was read, the span is read again.
    func add(_ numbers: NumberSummary, of quantity: Int64, at ts: Int64) throws(StoreFault) {
        let start = ts.rounded(downTo: resolution.length)
        if ts < mark {
            try merge(Row(ts: start, quantity: quantity, numbers: numbers))
        } else if ts < place.ts, start == span {
            addToSpan(numbers, of: quantity)
        } else if ts <= place.ts {
            rewind()
        }
    }

    /// Removes numbers of finer rows that were added; only in a transaction.
    ///
    /// The minimum and the maximum stay, because those of the other rows are not known. A summary without other rows
    /// is deleted.
    func remove(_ numbers: NumberSummary, of quantity: Int64, at ts: Int64) throws(StoreFault) {
        let start = ts.rounded(downTo: resolution.length)
        guard start < mark else {
            if start <= place.ts { rewind() }
            return
        }
        try reduce.run(binding: start, quantity, numbers.n, numbers.sum)
        try deleteEmpty.run(binding: start, quantity)
    }

    /// Summarises a span again after its finer rows have changed; only in a transaction.
    func recount(_ ts: Int64) throws(StoreFault) {
        let start = ts.rounded(downTo: resolution.length)
        guard start < mark else {
            if start <= place.ts { rewind() }
            return
        }
        try delete.run(binding: start)
        var numbers: [Int64: NumberSummary] = [:]
        try eachRow(of: start) { row in
            guard let found = row.numbers else { return }
            if numbers[row.quantity]?.add(found) == nil { numbers[row.quantity] = found }
        }
        for (quantity, numbers) in numbers { try merge(Row(ts: start, quantity: quantity, numbers: numbers)) }
    }

    private func eachRow(of start: Int64, _ body: (NumberRow) -> Void) throws(StoreFault) {
        defer { select.reset() }
        var place = RowPosition(before: start)
        var count = Self.slice
        while count == Self.slice {
            count = 0
            bind(place, end: start + resolution.length)
            while try select.step() {
                count += 1
                place = RowPosition(behind: select)
                body(NumberRow(select))
            }
            select.reset()
        }
    }

    private func bind(_ place: RowPosition, end: Int64) {
        select.bind(place.ts, place.second, place.third, Int64(Self.slice), end)
    }

    /// Deletes the rows from a lower mark on, which are summarised again; only in a transaction.
    func saveLower(_ mark: Int64) throws(StoreFault) {
        try deleteFrom.run(binding: mark)
        try state.set(key, to: mark)
    }

    /// Records that ``saveLower(_:)`` is committed.
    func lower(to mark: Int64) {
        self.mark = mark
        rewind()
    }

    /// Discards partial sums and returns to the mark.
    func rewind() {
        open.removeAll(keepingCapacity: true)
        span = mark
        place = RowPosition(before: mark)
    }

    /// Reads a slice; appends the spans that end in it to `rows`.
    ///
    /// - Returns: True if there are no more rows before `end`.
    private func gather(before end: Int64, into rows: inout [Row]) throws(StoreFault) -> Bool {
        bind(place, end: end)
        defer { select.reset() }
        var count = 0
        while try select.step() {
            count += 1
            place = RowPosition(behind: select)
            summarise(NumberRow(select), into: &rows)
        }
        guard count < Self.slice else { return false }
        closeSpan(into: &rows)
        return true
    }

    private func summarise(_ row: NumberRow, into rows: inout [Row]) {
        let start = row.ts.rounded(downTo: resolution.length)
        if start != span {
            closeSpan(into: &rows)
            span = start
        }
        if let numbers = row.numbers { addToSpan(numbers, of: row.quantity) }
    }

    private func addToSpan(_ numbers: NumberSummary, of quantity: Int64) {
        if open[quantity]?.add(numbers) == nil { open[quantity] = numbers }
    }

    private func closeSpan(into rows: inout [Row]) {
        for (quantity, numbers) in open.sorted(by: { $0.key < $1.key }) {
            rows.append(Row(ts: span, quantity: quantity, numbers: numbers))
        }
        open.removeAll(keepingCapacity: true)
    }

    private func merge(_ row: Row) throws(StoreFault) {
        let numbers = row.numbers
        try upsert.run(binding: row.ts, row.quantity, numbers.n, numbers.sum, numbers.min, numbers.max)
    }
}
