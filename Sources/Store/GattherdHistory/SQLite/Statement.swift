import CSQLite
import GattherdModel

/// One prepared statement, finalized when it is released.
///
/// Only ``step()`` can fail for external reasons; a wrong index is a bug, which is reported there too.
@safe struct Statement: ~Copyable {
    let raw: OpaquePointer
    private let connection: SQLiteConnection

    /// Compiles one literal statement; values are always bound.
    init(_ sql: String, on connection: SQLiteConnection) throws(StoreFault) {
        var raw: OpaquePointer?
        let code = unsafe sqlite3_prepare_v3(connection.raw, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &raw, nil)
        try connection.check(code, sql)
        guard let raw = unsafe raw else {
            throw StoreFault(sqlite: SQLITE_MISUSE, "no statement", sql, path: connection.path)
        }
        self.connection = connection
        unsafe self.raw = raw
    }

    deinit {
        unsafe sqlite3_finalize(raw)
    }

    /// Steps to the next row; returns false if there is none.
    func step() throws(StoreFault) -> Bool {
        let code = unsafe sqlite3_step(raw)
        if code == SQLITE_ROW { return true }
        if code != SQLITE_DONE { try fail(code) }
        return false
    }

    /// Runs to the end and resets the statement for other values; rows are ignored.
    func run() throws(StoreFault) {
        let code = unsafe sqlite3_step(raw)
        if code != SQLITE_DONE && code != SQLITE_ROW { try fail(code) }
        unsafe sqlite3_reset(raw)
    }

    /// Resets the statement and keeps its bound values.
    func reset() {
        unsafe sqlite3_reset(raw)
    }

    private func fail(_ code: Int32) throws(StoreFault) {
        defer { unsafe sqlite3_reset(raw) }
        try connection.check(code, unsafe sqlite3_sql(raw).map { unsafe String(cString: $0) } ?? "")
    }
}

/// A value that can be a parameter of a statement.
protocol StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32)
}

extension Int64: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) { statement.bind(self, at: index) }
}

extension Double: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) { statement.bind(self, at: index) }
}

extension Bool: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) { statement.bind(self, at: index) }
}

extension String: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) { statement.bind(self, at: index) }
}

extension Optional: StatementParameter where Wrapped: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) {
        if let value = self { value.bind(to: statement, at: index) } else { statement.bindNull(at: index) }
    }
}

extension Statement {
    /// Binds the values to the first parameters, in order.
    ///
    /// Statements that run for each sample bind by position instead, which is never slower.
    func bind<each Parameter: StatementParameter>(_ values: repeat each Parameter) {
        var index: Int32 = 0
        for value in repeat each values {
            index += 1
            value.bind(to: self, at: index)
        }
    }

    /// Binds the values and runs to the end.
    func run<each Parameter: StatementParameter>(binding values: repeat each Parameter) throws(StoreFault) {
        bind(repeat each values)
        try run()
    }

    func bind(_ value: Int64, at index: Int32) {
        unsafe sqlite3_bind_int64(raw, index, value)
    }

    func bind(_ value: Double, at index: Int32) {
        unsafe sqlite3_bind_double(raw, index, value)
    }

    func bind(_ flag: Bool, at index: Int32) {
        bind(flag ? 1 : 0 as Int64, at: index)
    }

    func bindNull(at index: Int32) {
        unsafe sqlite3_bind_null(raw, index)
    }

    /// Binds a copy of `text`, or NULL.
    func bind(_ text: String?, at index: Int32) {
        guard let text else { return bindNull(at: index) }
        unsafe text.utf8Span.span.withUnsafeBufferPointer { unsafe bindText($0, at: index, Self.copied) }
    }

    /// Binds a copy of `bytes`; no bytes are an empty blob, not NULL.
    func bind(_ octets: [UInt8], at index: Int32) {
        unsafe octets.span.withUnsafeBufferPointer { unsafe bindBlob($0, at: index, Self.copied) }
    }

    /// Runs with `text` bound without a copy.
    func run(text: Span<UInt8>, at index: Int32) throws(StoreFault) {
        defer { bindNull(at: index) }
        unsafe try text.withUnsafeBufferPointer { buffer throws(StoreFault) in
            unsafe bindText(buffer, at: index, nil)
            try run()
        }
    }

    /// Runs with `bytes` bound without a copy.
    func run(blob octets: Span<UInt8>, at index: Int32) throws(StoreFault) {
        defer { bindNull(at: index) }
        unsafe try octets.withUnsafeBufferPointer { buffer throws(StoreFault) in
            unsafe bindBlob(buffer, at: index, nil)
            try run()
        }
    }

    /// A valid pointer for no bytes, because a null pointer would mean NULL.
    private func bindText(_ utf8: UnsafeBufferPointer<UInt8>, at index: Int32, _ owner: sqlite3_destructor_type?) {
        guard let start = utf8.baseAddress else {
            unsafe sqlite3_bind_text(raw, index, "", 0, Self.copied)
            return
        }
        _ = unsafe start.withMemoryRebound(to: CChar.self, capacity: utf8.count) { characters in
            unsafe sqlite3_bind_text64(raw, index, characters, UInt64(utf8.count), owner, UInt8(SQLITE_UTF8))
        }
    }

    private func bindBlob(_ octets: UnsafeBufferPointer<UInt8>, at index: Int32, _ owner: sqlite3_destructor_type?) {
        if octets.isEmpty {
            unsafe sqlite3_bind_zeroblob(raw, index, 0)
        } else {
            unsafe sqlite3_bind_blob64(raw, index, octets.baseAddress, UInt64(octets.count), owner)
        }
    }

    /// `SQLITE_TRANSIENT`, a macro that Swift cannot import: SQLite copies the value.
    private static var copied: sqlite3_destructor_type { unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self) }
}
