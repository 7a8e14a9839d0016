import CSQLite
import GattherdModel

/// One prepared statement, finalized when it is released.
///
/// Values are bound all at once, in the order of the statement's parameters. Only ``step()`` can fail for external
/// reasons; too many values are a bug.
@safe struct Statement: ~Copyable {
    private let raw: OpaquePointer
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
    /// Binds the value to the parameter number `index`, counted from 1.
    func bind(to statement: borrowing Statement, at index: Int32)
}

extension Statement {
    /// Binds the values to the first parameters, in order.
    @inline(__always)
    func bind<each Parameter: StatementParameter>(_ values: repeat each Parameter) {
        var index: Int32 = 0
        for value in repeat each values {
            index += 1
            value.bind(to: self, at: index)
        }
    }

    /// Binds the values and runs to the end.
    @inline(__always)
    func run<each Parameter: StatementParameter>(binding values: repeat each Parameter) throws(StoreFault) {
        bind(repeat each values)
        try run()
    }

    /// Binds four values and runs to the end, for statements that run for each sample.
    ///
    /// Swift 6.3 does not unroll a loop over a pack, which costs 30 ns more than these calls.
    @inline(__always)
    func run<A: StatementParameter, B: StatementParameter, C: StatementParameter, D: StatementParameter>(
        binding first: A,
        _ second: B,
        _ third: C,
        _ fourth: D
    ) throws(StoreFault) {
        first.bind(to: self, at: 1)
        second.bind(to: self, at: 2)
        third.bind(to: self, at: 3)
        fourth.bind(to: self, at: 4)
        try run()
    }

    /// Binds five values and runs to the end, for statements that run for each sample.
    @inline(__always)
    func run<
        A: StatementParameter,
        B: StatementParameter,
        C: StatementParameter,
        D: StatementParameter,
        E: StatementParameter
    >(binding first: A, _ second: B, _ third: C, _ fourth: D, _ fifth: E) throws(StoreFault) {
        first.bind(to: self, at: 1)
        second.bind(to: self, at: 2)
        third.bind(to: self, at: 3)
        fourth.bind(to: self, at: 4)
        fifth.bind(to: self, at: 5)
        try run()
    }

    /// Binds the values and returns the first column of the first row; `nil` for NULL or no row.
    func firstInteger<each Parameter: StatementParameter>(
        binding values: repeat each Parameter
    ) throws(StoreFault) -> Int64? {
        bind(repeat each values)
        defer { reset() }
        return try step() && !isNull(0) ? integer(0) : nil
    }

    /// Binds the values and returns all rows, decoded by `decode`.
    func rows<Row, each Parameter: StatementParameter>(
        binding values: repeat each Parameter,
        decode: (borrowing Statement) throws(StoreFault) -> Row
    ) throws(StoreFault) -> [Row] {
        bind(repeat each values)
        defer { reset() }
        var rows: [Row] = []
        while try step() { rows.append(try decode(self)) }
        return rows
    }
}

// MARK: - Columns

extension Statement {
    func isNull(_ column: Int32) -> Bool {
        unsafe sqlite3_column_type(raw, column) == SQLITE_NULL
    }

    func integer(_ column: Int32) -> Int64 {
        unsafe sqlite3_column_int64(raw, column)
    }

    func optionalInteger(_ column: Int32) -> Int64? {
        isNull(column) ? nil : integer(column)
    }

    func real(_ column: Int32) -> Double {
        unsafe sqlite3_column_double(raw, column)
    }

    /// The whole text, including everything after a NUL.
    func text(_ column: Int32) -> String {
        guard let start = unsafe sqlite3_column_text(raw, column) else { return "" }
        let count = Int(unsafe sqlite3_column_bytes(raw, column))
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    func optionalText(_ column: Int32) -> String? {
        isNull(column) ? nil : text(column)
    }

    func bytes(_ column: Int32) -> [UInt8] {
        guard let start = unsafe sqlite3_column_blob(raw, column) else { return [] }
        let count = Int(unsafe sqlite3_column_bytes(raw, column))
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    /// A sample's stored value, in which a boolean is 1 or 0.
    func value(_ column: Int32) -> SampleValue {
        switch unsafe sqlite3_column_type(raw, column) {
        case SQLITE_INTEGER: .integer(integer(column))
        case SQLITE_FLOAT: .real(real(column))
        case SQLITE_NULL: .null
        default: .text(text(column))
        }
    }
}

// MARK: - Parameters

extension Int64: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) { statement.bind(integer: self, at: index) }
}

extension Double: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) { statement.bind(real: self, at: index) }
}

extension Bool: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) { statement.bind(integer: self ? 1 : 0, at: index) }
}

extension String: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) {
        unsafe utf8Span.span.withUnsafeBufferPointer { unsafe statement.bind(text: $0, at: index) }
    }
}

/// A blob; no bytes are an empty blob, not NULL.
extension [UInt8]: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) {
        unsafe span.withUnsafeBufferPointer { unsafe statement.bind(blob: $0, at: index) }
    }
}

extension Optional: StatementParameter where Wrapped: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) {
        if let value = self { value.bind(to: statement, at: index) } else { statement.bindNull(at: index) }
    }
}

/// A sample's value: booleans become 1 and 0; a number that is not finite is stored as unknown.
extension SampleValue: StatementParameter {
    func bind(to statement: borrowing Statement, at index: Int32) {
        switch self {
        case .integer(let number): number.bind(to: statement, at: index)
        case .real(let number) where number.isFinite: number.bind(to: statement, at: index)
        case .boolean(let flag): flag.bind(to: statement, at: index)
        case .text(let text): text.bind(to: statement, at: index)
        case .real, .null: statement.bindNull(at: index)
        }
    }
}

extension Statement {
    fileprivate func bind(integer: Int64, at index: Int32) {
        unsafe sqlite3_bind_int64(raw, index, integer)
    }

    fileprivate func bind(real: Double, at index: Int32) {
        unsafe sqlite3_bind_double(raw, index, real)
    }

    fileprivate func bindNull(at index: Int32) {
        unsafe sqlite3_bind_null(raw, index)
    }

    /// Binds a copy; a null pointer would mean NULL, so an empty text gets another one.
    fileprivate func bind(text utf8: UnsafeBufferPointer<UInt8>, at index: Int32) {
        guard let start = utf8.baseAddress else {
            unsafe sqlite3_bind_text(raw, index, "", 0, Self.copied)
            return
        }
        _ = unsafe start.withMemoryRebound(to: CChar.self, capacity: utf8.count) { characters in
            unsafe sqlite3_bind_text64(raw, index, characters, UInt64(utf8.count), Self.copied, UInt8(SQLITE_UTF8))
        }
    }

    fileprivate func bind(blob: UnsafeBufferPointer<UInt8>, at index: Int32) {
        if blob.isEmpty {
            unsafe sqlite3_bind_zeroblob(raw, index, 0)
        } else {
            unsafe sqlite3_bind_blob64(raw, index, blob.baseAddress, UInt64(blob.count), Self.copied)
        }
    }

    /// `SQLITE_TRANSIENT`, a macro that Swift cannot import: SQLite copies the value.
    private static var copied: sqlite3_destructor_type { unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self) }
}
