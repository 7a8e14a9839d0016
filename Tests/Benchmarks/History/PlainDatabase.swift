import CSQLite
import GattherdModel

/// A SQLite file with the settings of gattherd's.
@safe final class PlainDatabase {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// A prepared statement.
    @safe final class Query {
        fileprivate let raw: OpaquePointer
        private let database: PlainDatabase

        fileprivate init(_ raw: OpaquePointer, _ database: PlainDatabase) {
            unsafe self.raw = raw
            self.database = database
        }

        deinit { unsafe sqlite3_finalize(raw) }

        func bind(_ values: Int64...) {
            for (index, value) in values.enumerated() { unsafe sqlite3_bind_int64(raw, Int32(index + 1), value) }
        }

        func bind(real value: Double, at index: Int32) { unsafe sqlite3_bind_double(raw, index, value) }

        /// Steps through all rows and returns their number.
        @discardableResult
        func run() throws -> Int {
            var count = 0
            while unsafe sqlite3_step(raw) == SQLITE_ROW { count += 1 }
            let code = unsafe sqlite3_reset(raw)
            guard code == SQLITE_OK else { throw Failure(description: "SQLite \(code)") }
            return count
        }
    }

    private let raw: OpaquePointer

    init(path: String) throws {
        var raw: OpaquePointer?
        let code = unsafe sqlite3_open(path, &raw)
        guard code == SQLITE_OK, let raw = unsafe raw else { throw Failure(description: "\(path): SQLite \(code)") }
        unsafe self.raw = raw
        try execute(
            """
            PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF; PRAGMA cache_size = -1024;
            PRAGMA wal_autocheckpoint = 4000; PRAGMA temp_store = MEMORY
            """
        )
    }

    deinit { unsafe sqlite3_close_v2(raw) }

    func execute(_ sql: String) throws {
        let code = unsafe sqlite3_exec(raw, sql, nil, nil, nil)
        guard code == SQLITE_OK else {
            throw Failure(description: "\(sql): \(unsafe String(cString: sqlite3_errmsg(raw)))")
        }
    }

    func query(_ sql: String) throws -> Query {
        var statement: OpaquePointer?
        let code = unsafe sqlite3_prepare_v2(raw, sql, -1, &statement, nil)
        guard code == SQLITE_OK, let statement = unsafe statement else {
            throw Failure(description: "\(sql): \(unsafe String(cString: sqlite3_errmsg(raw)))")
        }
        return unsafe Query(statement, self)
    }
}
