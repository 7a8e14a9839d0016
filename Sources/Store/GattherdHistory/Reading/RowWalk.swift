import GattherdModel

/// The queries of a table that is ordered by time.
struct OrderedRows {
    /// The SQL that selects at most ?4 rows after the position ?1, ?2, ?3 and before the instant ?5, in order.
    ///
    /// The first three columns are the position.
    let sql: String
    /// The SQL that selects the position of the last row before the instant ?1.
    let last: String
}

/// Walks the rows of a time span in key order, slice by slice, and detects rows that break the order.
///
/// SQLite does not detect a damaged key: a damaged row may seem to be past the end of the range, and the rows after it
/// would be omitted without an error (seen with SQLite 3.40). Therefore the walk reads the rows of all devices, and its
/// last row must equal the row that a search from the other end finds. A single row whose damaged key lies before its
/// neighbours may still be omitted.
final class RowWalk {
    /// The number of rows per read.
    private static let slice = 4096

    private let connection: SQLiteConnection
    private let select: Statement
    private let selectLast: Statement
    private let end: Int64
    private var place: RowPosition

    /// - Parameters:
    ///   - rows: The queries of the table.
    ///   - times: The time span, in microseconds since 1970.
    ///   - connection: The database.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    init(_ rows: OrderedRows, in times: Range<Int64>, on connection: SQLiteConnection) throws(StoreFault) {
        self.connection = connection
        select = try Statement(rows.sql, on: connection)
        selectLast = try Statement(rows.last, on: connection)
        end = times.upperBound
        place = RowPosition(before: times.lowerBound)
    }

    /// Passes the rows to `body` until it returns false.
    ///
    /// - Parameters:
    ///   - decode: A function that decodes the statement's row; returns `nil` for a row that is not wanted.
    ///   - body: A function that receives an element; no snapshot is held during the call.
    /// - Throws: ``StoreFault`` when the file cannot be read, is damaged, or when the rows are not wanted any more.
    func run<Element>(
        decode: (borrowing Statement) throws(StoreFault) -> Element?,
        _ body: (Element) -> Bool
    ) throws(StoreFault) {
        var elements: [Element] = []
        var isOver = false
        while !isOver {
            guard connection.isWanted() else {
                throw StoreFault("\(connection.path): the query was cancelled: its client has left", .busy)
            }
            elements.removeAll(keepingCapacity: true)
            isOver = try connection.snapshot { () throws(StoreFault) in
                try readSlice { row throws(StoreFault) in
                    if let element = try decode(row) { elements.append(element) }
                }
            }
            for element in elements where !body(element) { return }
        }
    }

    /// Visits the rows of a slice and advances the position; returns true if there are no more.
    private func readSlice(_ visit: (borrowing Statement) throws(StoreFault) -> Void) throws(StoreFault) -> Bool {
        let visited = try visitRows(visit)
        guard let last = try last() else { return visited == 0 }
        guard visited == 0 || place <= last, visited == Self.slice || last <= place else {
            throw damage(behind: place)
        }
        return visited < Self.slice
    }

    private func visitRows(_ visit: (borrowing Statement) throws(StoreFault) -> Void) throws(StoreFault) -> Int {
        var last = place
        select.bind(last.ts, last.second, last.third, Int64(Self.slice), end)
        defer {
            select.reset()
            place = last
        }
        var visited = 0
        while try select.step() {
            let next = RowPosition(behind: select)
            guard last < next else { throw damage(behind: last) }
            last = next
            visited += 1
            try visit(select)
        }
        return visited
    }

    private func last() throws(StoreFault) -> RowPosition? {
        selectLast.bind(end)
        defer { selectLast.reset() }
        return try selectLast.step() ? RowPosition(behind: selectLast) : nil
    }

    private func damage(behind place: RowPosition) -> StoreFault {
        let time = Timestamp(microseconds: place.ts).rfc3339
        let remedy = "'gattherd db check' shows the damage, 'sqlite3 FILE .recover' saves what can be saved"
        return StoreFault(
            "\(connection.path): the file is damaged: rows behind \(time) cannot be found; \(remedy)",
            .damaged
        )
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

/// The rows of a small table by key; a row is read when it is first needed.
final class KeyedRows<Row> {
    private let select: Statement
    private let path: String
    private let decode: (borrowing Statement) -> Row
    private var known: [Int64: Row] = [:]

    /// - Parameters:
    ///   - sql: A query of the whole table, its key first.
    ///   - connection: The database.
    ///   - decode: A function that makes a row of the statement's columns.
    /// - Throws: ``StoreFault`` when the table cannot be read.
    init(
        _ sql: String,
        on connection: SQLiteConnection,
        decode: @escaping (borrowing Statement) -> Row
    ) throws(StoreFault) {
        select = try Statement(sql, on: connection)
        self.decode = decode
        path = connection.path
        try load()
    }

    subscript(key: Int64) -> Row? {
        if let row = known[key] { return row }
        try? load()
        return known[key]
    }

    /// Returns the row that another table refers to.
    ///
    /// - Throws: ``StoreFault`` if the row is missing or cannot be read.
    func row(_ key: Int64) throws(StoreFault) -> Row {
        if let row = known[key] { return row }
        try load()
        if let row = known[key] { return row }
        throw StoreFault("\(path): the file is damaged: a row refers to a missing row", .damaged)
    }

    private func load() throws(StoreFault) {
        defer { select.reset() }
        while try select.step() { known[select.integer(0)] = decode(select) }
    }
}
