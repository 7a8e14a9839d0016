import CPostgres
import Glibc

/// A connection by libpq; only for the thread that uses it at the moment.
///
/// `@unchecked Sendable` is safe: ``PostgresClient`` gives a connection to one thread at a time.
@safe final class PostgresConnection: @unchecked Sendable {
    /// The maximum number of bytes of an answer; libpq buffers a message of any length that the server announces.
    private static let maximumReceived: UInt64 = 32 * 1024 * 1024

    private let raw: OpaquePointer

    /// Connects; blocks until the host has answered or the time limit in the options has passed.
    ///
    /// - Throws: ``PostgresError`` with the words of libpq.
    init(_ options: [(name: String, value: String)]) throws(PostgresError) {
        let (names, values) = (CStrings(options.map(\.name)), CStrings(options.map(\.value)))
        let raw = unsafe withExtendedLifetime((names, values)) {
            unsafe PQconnectdbParams(names.pointer, values.pointer, 0)
        }
        guard let raw = unsafe raw else { throw PostgresError(.local, "libpq cannot be started; memory may be short") }
        unsafe self.raw = raw
        guard unsafe PQstatus(raw) == CONNECTION_OK, unsafe PQsetnonblocking(raw, 1) == 0 else {
            throw PostgresError(.connection, words)
        }
        unsafe cpostgres_silence(raw)
    }

    deinit {
        unsafe PQfinish(raw)
    }

    /// False if the connection is known to be broken.
    var isUsable: Bool { unsafe PQstatus(raw) == CONNECTION_OK }

    /// True if the server has ended the connection since the last statement, as after its restart or a limit for idle
    /// connections.
    ///
    /// Then there is something to read: the end, or its reason. A connection within a transaction counts as usable,
    /// because another one could not continue it.
    var hasEndedIdle: Bool {
        guard unsafe PQtransactionStatus(raw) == PQTRANS_IDLE else { return false }
        var entry = pollfd(fd: unsafe PQsocket(raw), events: Int16(POLLIN), revents: 0)
        return unsafe Glibc.poll(&entry, 1, 0) != 0
    }

    /// The password as the server stores it, so that statements and logs do not have it in plain text.
    func encrypted(_ password: String, of role: String) throws(PostgresError) -> String {
        guard let text = unsafe PQencryptPasswordConn(raw, password, role, "scram-sha-256") else {
            throw PostgresError(.connection, words)
        }
        defer { unsafe PQfreemem(text) }
        return unsafe String(cString: text)
    }

    /// Runs one statement and waits for its rows, as texts.
    ///
    /// The statement is cancelled at the server, and the connection should be closed, if the time has passed.
    ///
    /// - Parameters:
    ///   - sql: One statement, which is not prepared under a name.
    ///   - parameters: The values of `$1` and so on.
    ///   - mayContinue: Called several times a second while the answer is waited for.
    /// - Returns: The rows.
    /// - Throws: ``PostgresError``.
    func run(
        _ sql: String,
        _ parameters: [PostgresParameter],
        while mayContinue: () -> Bool
    ) throws(PostgresError) -> [[String?]] {
        try send(sql, parameters)
        return try receive(while: mayContinue)
    }

    /// Runs statements without parameters, one after the other in one transaction.
    func script(_ sql: String, while mayContinue: () -> Bool) throws(PostgresError) {
        guard unsafe PQsendQuery(raw, sql) == 1 else { throw PostgresError(.connection, words) }
        _ = try receive(while: mayContinue)
    }

    private func send(_ sql: String, _ parameters: [PostgresParameter]) throws(PostgresError) {
        // One buffer, so that one pointer is valid for all; never empty, because only NULL is a null pointer.
        var bytes: [UInt8] = []
        bytes.reserveCapacity(parameters.reduce(1) { $0 + ($1.bytes?.count ?? 0) })
        for parameter in parameters { bytes.append(contentsOf: parameter.bytes ?? []) }
        bytes.append(0)
        let types = parameters.map(\.type)
        let lengths = parameters.map { Int32($0.bytes?.count ?? 0) }
        let formats = parameters.map { _ in Int32(1) }
        let sent = unsafe bytes.withUnsafeBytes { buffer in
            guard let start = unsafe buffer.baseAddress?.assumingMemoryBound(to: CChar.self) else { return Int32(0) }
            var offset = 0
            var values: [UnsafePointer<CChar>?] = unsafe []
            for parameter in parameters {
                guard let size = parameter.bytes?.count else {
                    unsafe values.append(nil)
                    continue
                }
                unsafe values.append(start + offset)
                offset += size
            }
            return unsafe PQsendQueryParams(
                raw,
                sql,
                Int32(parameters.count),
                types,
                values,
                lengths,
                formats,
                0
            )
        }
        guard sent == 1 else { throw PostgresError(.connection, words) }
    }

    /// Receives row by row, until the server is ready for the next statement.
    private func receive(while mayContinue: () -> Bool) throws(PostgresError) -> [[String?]] {
        guard unsafe PQsetSingleRowMode(raw) == 1 else { throw PostgresError(.connection, words) }
        let start = received
        var (rows, failure) = (PostgresRows(), PostgresError?.none)
        while let result = try unsafe next(from: start, while: mayContinue) {
            defer { unsafe PQclear(result) }
            switch unsafe PQresultStatus(result) {
            case PGRES_SINGLE_TUPLE: try unsafe rows.append(result)
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: break
            case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
                throw PostgresError(.connection, "the server wants to copy data")
            default: if failure == nil { failure = unsafe error(result) }
            }
        }
        if let failure { throw failure }
        return rows.rows
    }

    /// Waits for the next result; `nil` at the end.
    private func next(from start: UInt64, while mayContinue: () -> Bool) throws(PostgresError) -> OpaquePointer? {
        try wait(from: start, while: mayContinue)
        // A server may send results faster than they are read.
        guard mayContinue() else { throw late() }
        return unsafe PQgetResult(raw)
    }

    /// Sends the remaining bytes and receives until the answer is complete.
    ///
    /// - Parameters:
    ///   - start: The bytes that were received before this statement.
    ///   - mayContinue: Called several times a second.
    /// - Throws: ``PostgresError`` after the time, or after too many bytes.
    private func wait(from start: UInt64, while mayContinue: () -> Bool) throws(PostgresError) {
        var unsent = unsafe PQflush(raw)
        while unsent == 1 || (unsafe PQisBusy(raw) == 1) {
            guard mayContinue() else { throw late() }
            guard try poll(forWriting: unsent == 1) else { continue }
            guard received <= start + Self.maximumReceived else {
                throw PostgresError(.connection, "the answer has more than \(Self.maximumReceived) bytes")
            }
            guard unsafe PQconsumeInput(raw) == 1 else { throw PostgresError(.connection, words) }
            while removeNotification() {}
            if unsent == 1 { unsent = unsafe PQflush(raw) }
        }
        while removeNotification() {}
        guard unsent == 0 else { throw PostgresError(.connection, words) }
    }

    /// Removes a notification, which libpq would keep until the connection closes; returns false if there is none.
    ///
    /// A pool passes on those that another client has asked for, and a hostile server sends any number.
    func removeNotification() -> Bool {
        guard let notification = unsafe PQnotifies(raw) else { return false }
        unsafe PQfreemem(notification)
        return true
    }

    /// The bytes that were received since the start of the connection; 0 for a Unix socket, whose server is local.
    private var received: UInt64 { cpostgres_received(unsafe PQsocket(raw)) }

    /// Waits a tenth of a second for the socket; false if nothing has happened.
    private func poll(forWriting isWriting: Bool) throws(PostgresError) -> Bool {
        let socket = unsafe PQsocket(raw)
        guard socket >= 0 else { throw PostgresError(.connection, words) }
        var entry = pollfd(fd: socket, events: Int16(POLLIN) | (isWriting ? Int16(POLLOUT) : 0), revents: 0)
        return unsafe Glibc.poll(&entry, 1, 100) > 0
    }

    /// Cancels the statement at the server.
    private func late() -> PostgresError {
        if let request = unsafe PQgetCancel(raw) { unsafe CancelRequest(request).send() }
        return PostgresError(.cancelled, "the server did not answer in time")
    }

    /// The words of libpq for the last error.
    private var words: String { unsafe String(cString: PQerrorMessage(raw)).onOneLine }

    private func error(_ result: OpaquePointer) -> PostgresError {
        guard let state = unsafe cpostgres_sqlstate(result) else { return PostgresError(.connection, words) }
        let message = unsafe cpostgres_message(result)
        let text = unsafe message.map { unsafe String(cString: $0) } ?? words
        return PostgresError(.server(unsafe String(cString: state)), text.onOneLine)
    }
}

/// Texts as a C array that ends with a null pointer.
@safe private final class CStrings {
    let pointer: UnsafeMutablePointer<UnsafePointer<CChar>?>
    private let count: Int

    init(_ texts: [String]) {
        count = texts.count
        unsafe pointer = .allocate(capacity: texts.count + 1)
        for (index, text) in texts.enumerated() {
            unsafe (pointer + index).initialize(to: UnsafePointer(strdup(text)))
        }
        unsafe (pointer + texts.count).initialize(to: nil)
    }

    deinit {
        for index in 0..<count { unsafe free(UnsafeMutablePointer(mutating: pointer[index])) }
        unsafe pointer.deallocate()
    }
}

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
