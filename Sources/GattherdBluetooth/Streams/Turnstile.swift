import GattherdSync

/// Lets operations through one at a time, in the order in which they were called.
///
/// Each may have its own deadline, which runs from the call; all can be stopped from outside.
final class Turnstile: Sendable {
    final class Ticket: Sendable {
        fileprivate let turn = Mailbox<Void>(.bufferingOldest(1))
        fileprivate let stop = Mailbox<BluetoothError>(.bufferingOldest(1))
    }

    let tickets = Locked<[Ticket]>([])
    /// Who is meant, for the words of errors.
    private let name: String

    init(_ name: String) {
        self.name = name
    }

    /// Ends everything that waits or is under way with `error`.
    func stopAll(_ error: BluetoothError) {
        for ticket in tickets.withLock({ $0 }) { ticket.stop.push(error) }
    }

    /// Runs `body` when it is its turn.
    ///
    /// - Throws: What `body` throws; `timedOut` at the deadline; what ``stopAll(_:)`` says; `cancelled` with the task.
    func perform<Value: Sendable>(
        _ operation: BluetoothError.Operation,
        within limit: Duration?,
        _ body: @escaping @Sendable () async throws(BluetoothError) -> Value
    ) async throws(BluetoothError) -> Value {
        let ticket = Ticket()
        enter(ticket)
        defer { leave(ticket) }
        let result = await withTaskGroup(of: Result<Value, BluetoothError>?.self) { group in
            group.addTask { await Self.run(body, after: ticket) }
            group.addTask { await Self.stop(of: ticket) }
            if let limit { group.addTask { await self.deadline(limit, operation) } }
            var first: Result<Value, BluetoothError>?
            for await result in group where first == nil && result != nil {
                first = result
                group.cancelAll()
            }
            return first ?? .failure(BluetoothError(.cancelled, "cancelled"))
        }
        do throws(BluetoothError) {
            return try result.get()
        } catch {
            throw error.during(operation)
        }
    }

    private func enter(_ ticket: Ticket) {
        let isFirst = tickets.withLock { tickets in
            tickets.append(ticket)
            return tickets.count == 1
        }
        if isFirst { ticket.turn.push(()) }
    }

    private func leave(_ ticket: Ticket) {
        let next = tickets.withLock { tickets -> Ticket? in
            guard let index = tickets.firstIndex(where: { $0 === ticket }) else { return nil }
            tickets.remove(at: index)
            return index == 0 ? tickets.first : nil
        }
        next?.turn.push(())
    }

    private static func run<Value: Sendable>(
        _ body: @Sendable () async throws(BluetoothError) -> Value,
        after ticket: Ticket
    ) async -> Result<Value, BluetoothError>? {
        do throws(BluetoothError) {
            guard try await ticket.turn.next() != nil, !Task.isCancelled else { return nil }
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    private static func stop<Value>(of ticket: Ticket) async -> Result<Value, BluetoothError>? {
        let error = try? await ticket.stop.next()
        return error.map { .failure($0) }
    }

    private func deadline<Value>(
        _ limit: Duration,
        _ operation: BluetoothError.Operation
    ) async -> Result<Value, BluetoothError>? {
        guard (try? await Task.sleep(for: limit.settable)) != nil else { return nil }
        return .failure(BluetoothError(.timedOut, "\(name) did not finish within \(limit)"))
    }
}
