import CPostgres

/// The rows of an answer, within limits: a broken server could send rows without end.
struct PostgresRows {
    private static let maximumRows = 100_000
    private static let maximumBytes = 16 * 1024 * 1024

    private(set) var rows: [[String?]] = []
    private var bytes = 0

    /// Appends the row of a result in single-row mode.
    mutating func append(_ result: OpaquePointer) throws(PostgresError) {
        for row in 0..<(unsafe PQntuples(result)) {
            let columns = 0..<(unsafe PQnfields(result))
            for column in columns { bytes += Int(unsafe PQgetlength(result, row, column)) }
            guard rows.count < Self.maximumRows, bytes <= Self.maximumBytes else {
                throw PostgresError(.connection, "the answer has more than \(Self.maximumRows) rows or 16 MiB")
            }
            rows.append(columns.map { unsafe Self.text(result, row, $0) })
        }
    }

    private static func text(_ result: OpaquePointer, _ row: Int32, _ column: Int32) -> String? {
        unsafe PQgetisnull(result, row, column) == 1 ? nil : String(cString: PQgetvalue(result, row, column))
    }
}
