import GattherdSync

/// A mutex for asynchronous operations, which run one at a time in the order of their calls.
///
/// Each operation may have a deadline, counted from the call. ``stopAll(_:)`` ends all. While the mutex is reserved,
/// only privileged operations run.
final class AsyncMutex: Sendable {
    final class Ticket: Sendable {
        fileprivate let operation: BluetoothError.Operation
        fileprivate let turn = Mailbox<Void>(.bufferingOldest(1))
        fileprivate let stop = Mailbox<BluetoothError>(.bufferingOldest(1))

        fileprivate init(_ operation: BluetoothError.Operation) {
            self.operation = operation
        }
    }

    private let turns = Locked(TurnQueue<Ticket>())
    /// The name of the protected object, for error messages.
    private let name: String
    private let log: OperationLog?

    init(_ name: String, log: OperationLog? = nil) {
        self.name = name
        self.log = log
    }

    /// Ends all waiting and running operations with `error`, except those of the kind `kept`.
    func stopAll(_ error: BluetoothError, except kept: BluetoothError.Operation? = nil) {
        for ticket in turns.withLock({ $0.tickets }) where ticket.operation != kept { ticket.stop.push(error) }
    }

    /// The number of operations that run or wait.
    var count: Int { turns.withLock { $0.tickets.count } }

    /// Lets only privileged operations begin until ``open()``.
    func reserve() {
        turns.withLock { $0.reserve() }
    }

    /// Lets all operations begin, in the order of their calls.
    func open() {
        turns.withLock { $0.open() }?.turn.push(())
    }

    /// Runs `body` in its turn.
    ///
    /// - Parameters:
    ///   - operation: The operation, for errors.
    ///   - limit: The time from the call to the end.
    ///   - timeout: The limit of the wait for the turn; `body` has its own deadline.
    ///   - subject: The characteristic of the operation, for errors and the log.
    ///   - isPrivileged: True if the operation may run while the mutex is reserved.
    ///   - body: The operation itself.
    /// - Returns: The value of `body`.
    /// - Throws: The error of `body`; `timedOut` at the deadline; the error of ``stopAll(_:)``; `cancelled` if the task
    ///   is cancelled.
    func perform<Value: Sendable>(
        _ operation: BluetoothError.Operation,
        within limit: Duration?,
        waiting timeout: Duration? = nil,
        on subject: CharacteristicID? = nil,
        isPrivileged: Bool = false,
        _ body: @escaping @Sendable () async throws(BluetoothError) -> Value
    ) async throws(BluetoothError) -> Value {
        let (ticket, start) = (Ticket(operation), ContinuousClock.now)
        let hasTurn = enter(ticket, isPrivileged)
        let timeout = hasTurn ? nil : timeout
        defer { leave(ticket) }
        let result = await withTaskGroup(of: Result<Value, BluetoothError>?.self) { group in
            group.addTask { await self.run(body, after: ticket, waiting: timeout) }
            group.addTask { await Self.stop(of: ticket) }
            if let limit { group.addTask { await self.deadline(limit) } }
            var first: Result<Value, BluetoothError>?
            for await result in group where first == nil && result != nil {
                first = result
                group.cancelAll()
            }
            return first ?? .failure(BluetoothError(.cancelled, "cancelled"))
        }
        do throws(BluetoothError) {
            let value = try result.get()
            log?.finished(operation, subject, since: start, nil)
            return value
        } catch {
            log?.finished(operation, subject, since: start, error)
            throw error.during(operation, of: subject.map { "\($0) of \(name)" })
        }
    }

    /// Adds a ticket; returns true if it has its turn at once.
    private func enter(_ ticket: Ticket, _ isPrivileged: Bool) -> Bool {
        let hasTurn = turns.withLock { $0.enter(ticket, isPrivileged: isPrivileged) }
        if hasTurn { ticket.turn.push(()) }
        return hasTurn
    }

    private func leave(_ ticket: Ticket) {
        turns.withLock { $0.leave(ticket) }?.turn.push(())
    }

    private func run<Value: Sendable>(
        _ body: @Sendable () async throws(BluetoothError) -> Value,
        after ticket: Ticket,
        waiting timeout: Duration?
    ) async -> Result<Value, BluetoothError>? {
        do throws(BluetoothError) {
            guard try await turn(of: ticket, timeout) != nil, !Task.isCancelled else { return nil }
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    /// Waits for the turn; returns `nil` if the task is cancelled.
    private func turn(of ticket: Ticket, _ timeout: Duration?) async throws(BluetoothError) -> Void? {
        guard let timeout else { return try await ticket.turn.next() }
        return try await withDeadline(.now.advanced(by: timeout.settable), late(timeout)) {
            () throws(BluetoothError) in try await ticket.turn.next()
        }
    }

    private static func stop<Value>(of ticket: Ticket) async -> Result<Value, BluetoothError>? {
        let error = try? await ticket.stop.next()
        return error.map { .failure($0) }
    }

    private func deadline<Value>(_ limit: Duration) async -> Result<Value, BluetoothError>? {
        guard (try? await Task.sleep(for: limit.settable)) != nil else { return nil }
        return .failure(late(limit))
    }

    private func late(_ limit: Duration) -> BluetoothError {
        BluetoothError(.timedOut, "\(name): not finished within \(max(.zero, limit))")
    }
}
