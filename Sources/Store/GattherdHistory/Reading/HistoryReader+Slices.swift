import GattherdModel

/// The queries of a table that is ordered by time.
struct OrderedRows {
    /// Selects at most ?4 rows after the position ?1, ?2, ?3 and before the instant ?5, in order.
    ///
    /// The first three columns are the position.
    let sql: String
    /// Selects the position of the last row before the instant ?1.
    let last: String
}

extension HistoryReader {
    /// The number of rows per read.
    private static let slice = 4096

    /// Passes the rows of a time span to `body`, slice by slice, until `body` returns false.
    ///
    /// - Parameters:
    ///   - rows: The queries of the table.
    ///   - times: The time span, in microseconds since 1970.
    ///   - decode: A function that decodes the statement's row; returns `nil` for a row that is not wanted.
    ///   - body: A function that receives an element; no snapshot is held during the call.
    /// - Throws: ``StoreFault`` when the file cannot be read, or is damaged.
    func slices<Element>(
        _ rows: OrderedRows,
        in times: Range<Int64>,
        decode: (borrowing Statement) throws(StoreFault) -> Element?,
        _ body: (Element) -> Bool
    ) throws(StoreFault) {
        let walk = try RowWalk(rows, before: times.upperBound, on: connection)
        var place = RowPosition(before: times.lowerBound)
        var elements: [Element] = []
        var isOver = false
        while !isOver {
            elements.removeAll(keepingCapacity: true)
            isOver = try connection.snapshot { () throws(StoreFault) in
                try walk.step(Self.slice, from: &place) { row throws(StoreFault) in
                    if let element = try decode(row) { elements.append(element) }
                }
            }
            for element in elements where !body(element) { return }
        }
    }
}

/// Walks a table in key order and detects rows that break the order.
///
/// SQLite does not detect a damaged key: a damaged row may seem to be past the end of the range, and the rows after it
/// would be omitted without an error (seen with SQLite 3.40). Therefore the walk reads the rows of all devices, and its
/// last row must equal the row that a search from the other end finds. A single row whose damaged key lies before its
/// neighbours may still be omitted.
private final class RowWalk {
    private let select: Statement
    private let selectLast: Statement
    private let path: String

    init(_ rows: OrderedRows, before end: Int64, on connection: SQLiteConnection) throws(StoreFault) {
        select = try Statement(rows.sql, on: connection)
        select.bind(end, at: 5)
        selectLast = try Statement(rows.last, on: connection)
        selectLast.bind(end)
        path = connection.path
    }

    /// Visits at most `count` rows after `place` and advances it; returns true if there are no more.
    func step(
        _ count: Int,
        from place: inout RowPosition,
        _ visit: (borrowing Statement) throws(StoreFault) -> Void
    ) throws(StoreFault) -> Bool {
        let visited = try go(count, from: &place, visit)
        guard let last = try last() else { return visited == 0 }
        guard visited == 0 || place <= last, visited == count || last <= place else { throw damage(at: place) }
        return visited < count
    }

    private func go(
        _ count: Int,
        from place: inout RowPosition,
        _ visit: (borrowing Statement) throws(StoreFault) -> Void
    ) throws(StoreFault) -> Int {
        select.bind(place.ts, place.second, place.third, Int64(count))
        defer { select.reset() }
        var visited = 0
        while try select.step() {
            let next = RowPosition(behind: select)
            guard place < next else { throw damage(at: place) }
            place = next
            visited += 1
            try visit(select)
        }
        return visited
    }

    private func last() throws(StoreFault) -> RowPosition? {
        defer { selectLast.reset() }
        return try selectLast.step() ? RowPosition(behind: selectLast) : nil
    }

    private func damage(at place: RowPosition) -> StoreFault {
        let time = Timestamp(microseconds: place.ts).rfc3339
        let remedy = "'gattherd db check' tells more, 'sqlite3 FILE .recover' saves what can be saved"
        return StoreFault("\(path): the file is damaged: rows behind \(time) cannot be found; \(remedy)", .damaged)
    }
}

extension SQLiteConnection {
    /// Runs `body`, which only reads, on a snapshot of the file.
    fileprivate func snapshot<Value>(_ body: () throws(StoreFault) -> Value) throws(StoreFault) -> Value {
        try execute("BEGIN")
        defer { try? execute("COMMIT") }
        return try body()
    }
}
