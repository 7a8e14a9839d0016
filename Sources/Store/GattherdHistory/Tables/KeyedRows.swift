import GattherdModel

/// The rows of a small table by key; a row is read when it is first needed.
final class KeyedRows<Row> {
    private let statement: Statement
    private let path: String
    private let decode: (borrowing Statement) -> Row
    private var known: [Int64: Row] = [:]

    /// - Parameters:
    ///   - sql: A query of the whole table, its key first.
    ///   - connection: The database.
    ///   - decode: Makes a row of the statement's columns.
    /// - Throws: ``StoreFault`` when the table cannot be read.
    init(
        _ sql: String,
        on connection: SQLiteConnection,
        decode: @escaping (borrowing Statement) -> Row
    ) throws(StoreFault) {
        statement = try Statement(sql, on: connection)
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
        throw StoreFault("\(path): the file is damaged: a row refers to nothing", .damaged)
    }

    private func load() throws(StoreFault) {
        defer { statement.reset() }
        while try statement.step() { known[statement.integer(0)] = decode(statement) }
    }
}
