import GattherdSync
import Synchronization

/// Runs statements, each call on a thread of its own that ends with it.
///
/// A connection is opened on demand and kept for the next call. It has no state that a pool of connections would have
/// to keep: no named statements, no settings.
package final class PostgresClient: Sendable {
    private struct State: Sendable {
        var busy = 0
        var isClosed = false
    }

    /// A call that may be cancelled by another thread.
    package final class Call: Sendable {
        private let isCancelled = Atomic(false)
        private let deadline: SuspendingClock.Instant

        init(within limit: Duration) {
            deadline = SuspendingClock.now + limit
        }

        func cancel() { isCancelled.store(true, ordering: .relaxed) }
        var mayContinue: Bool { !isCancelled.load(ordering: .relaxed) && SuspendingClock.now < deadline }
    }

    /// The class of states of unsuitable transactions, such as read-only ones, after which another connection is made.
    ///
    /// A former primary that is a standby now, or a pool before it, may keep its connections. A connection keeps the
    /// default isolation level that it began with.
    private static let wrongTransaction = "25"
    /// The time in which the server may confirm that it has cancelled a late statement.
    private static let cancellationTime = Duration.seconds(2)
    /// The maximum number of threads; a cancelled call may hang in a name lookup.
    private static let maximumCalls = 4

    private let url: PostgresURL
    private let user: String?
    private let authority: String?
    private let readPassword: @Sendable () -> String?
    private let connections: PostgresConnections
    private let state = Locked(State())

    /// - Parameters:
    ///   - url: The database.
    ///   - user: The user, unless the URL has one.
    ///   - authority: The file with the certificates of authorities; `nil` for the system's.
    ///   - connections: The connections, which other clients of this role and database may share.
    ///   - readPassword: Reads the password for a new connection; it may block.
    package init(
        _ url: PostgresURL,
        user: String? = nil,
        authority: String? = nil,
        connections: PostgresConnections = PostgresConnections(),
        readPassword: @escaping @Sendable () -> String? = { nil }
    ) {
        (self.url, self.user, self.authority, self.readPassword) = (url, user, authority, readPassword)
        self.connections = connections
        connections.join()
    }

    deinit { close() }

    /// Runs one statement and returns its rows as texts.
    func run(
        _ sql: String,
        _ parameters: [PostgresParameter] = [],
        within limit: Duration = .seconds(25)
    ) async throws(PostgresError) -> [[String?]] {
        try await perform(within: limit) { (connection, call) throws(PostgresError) in
            try connection.run(sql, parameters) { call.mayContinue }
        }
    }

    /// Runs `body` with the connection on a thread of its own.
    ///
    /// A thread that still tries the addresses of several hosts at the limit is abandoned.
    func perform<Value: Sendable>(
        within limit: Duration,
        _ body: @escaping @Sendable (PostgresConnection, Call) throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        let call = Call(within: limit)
        let result = await withTaskGroup(of: Result<Value, PostgresError>?.self) { group in
            group.addTask { [self] in
                await NamedThread.result(name: "postgres") { [self] in
                    Result { () throws(PostgresError) in try attempt(call, body) }
                }
            }
            group.addTask {
                let isOver = (try? await Task.sleep(for: limit + Self.cancellationTime, clock: .loop)) != nil
                return isOver ? .failure(PostgresError(.connection, "it did not answer within \(limit)")) : nil
            }
            defer {
                group.cancelAll()
                call.cancel()
            }
            return await group.next() ?? nil
        }
        guard let result else { throw PostgresError(.cancelled, "the call was cancelled") }
        return try result.get()
    }

    /// Runs `body` with a kept connection or a new one; keeps it unless it has failed.
    private func attempt<Value>(
        _ call: Call,
        _ body: (PostgresConnection, Call) throws(PostgresError) -> Value
    ) throws(PostgresError) -> Value {
        try start()
        defer { end() }
        let connection = try connections.take(while: { call.mayContinue }, connect: connect)
        // After a slow connect the caller has stopped waiting, so a late statement must not run. The next one may, as
        // otherwise a host that is away or a slow name server would let no call succeed.
        guard call.mayContinue else {
            connections.finish(keeping: connection)
            throw PostgresError(.cancelled, "the time was over before it was connected")
        }
        do throws(PostgresError) {
            let value = try body(connection, call)
            connections.finish(keeping: connection)
            return value
        } catch {
            let isKept = error.sqlState.map { !$0.hasPrefix(Self.wrongTransaction) } ?? false
            connections.finish(keeping: isKept ? connection : nil)
            throw error
        }
    }

    /// Closes the connection, unless another client shares it; calls that follow make new ones, which are not kept.
    package func close() {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        if isFirst { connections.leave() }
    }

    private func connect() throws(PostgresError) -> PostgresConnection {
        try PostgresConnection(url.options(user: user, password: readPassword(), authority: authority))
    }

    private func start() throws(PostgresError) {
        let isAllowed = state.withLock { state in
            guard state.busy < Self.maximumCalls else { return false }
            state.busy += 1
            return true
        }
        guard isAllowed else { throw PostgresError(.local, "earlier calls still wait for the server") }
    }

    private func end() {
        state.withLock { $0.busy -= 1 }
    }
}
