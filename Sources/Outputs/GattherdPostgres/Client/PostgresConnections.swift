import GattherdSync
import Glibc

/// The connections of a role to a database, which several clients share.
///
/// Mostly one is enough. A call that would have to wait for another one opens a second connection, so it does not wait
/// for a long statement. If the server has no connection left, the calls take turns.
package final class PostgresConnections: Sendable {
    /// A database and a role, with the files for a connection.
    struct Target: Hashable, Sendable {
        let url: PostgresURL
        let user: String
        let authority: String?
        let passwordFile: String?
    }

    private struct Idle: Sendable {
        let connection: PostgresConnection
        let since: SuspendingClock.Instant
    }

    private struct State: Sendable {
        var clients = 0
        /// The connections that no call has, in the order of their last use.
        var idle: [Idle] = []
        /// The number of calls that have a connection, or open one.
        var busy = 0
        /// The tickets of the calls that wait, in their order.
        var waiting: [UInt64] = []
        var lastTicket: UInt64 = 0

        /// Removes a connection that has been idle since `limit`, if there is another one.
        mutating func removeSurplus(idleSince limit: SuspendingClock.Instant) -> Idle? {
            guard busy + idle.count > 1, let oldest = idle.first, oldest.since <= limit else { return nil }
            return idle.removeFirst()
        }
    }

    private enum Turn: Sendable {
        case use(PostgresConnection)
        case open
        case wait
    }

    /// The longest wait for a connection of another call, before a second one is opened.
    private static let patience = Duration.milliseconds(100)
    /// The connections of this process.
    private static let all = Locked<[Target: PostgresConnections]>([:])

    /// The time after which an idle connection is closed, if there is another one.
    ///
    /// Longer than the pause between exchanges of leases: beside slow batches, each would open a connection otherwise.
    let surplusTime: Duration
    private let state = Locked(State())

    package init(surplusTime: Duration = .seconds(5)) {
        self.surplusTime = surplusTime
    }

    /// Returns the connections of this process to a target.
    static func shared(to target: Target) -> PostgresConnections {
        all.withLock { all in
            if let connections = all[target] { return connections }
            let connections = PostgresConnections()
            all[target] = connections
            return connections
        }
    }

    /// Adds a client.
    func join() {
        state.withLock { $0.clients += 1 }
    }

    /// Removes a client; without one, no connection is kept.
    func leave() {
        let closed = state.withLock { state -> [Idle] in
            state.clients -= 1
            guard state.clients == 0 else { return [] }
            defer { state.idle = [] }
            return state.idle
        }
        _ = closed
    }

    /// Waits for a connection of another call for a moment, then opens one.
    ///
    /// - Parameters:
    ///   - mayContinue: False if the call is over.
    ///   - connect: Opens a connection.
    /// - Returns: A connection for the caller alone, until it calls ``finish(keeping:)``.
    /// - Throws: The error of `connect`, unless a connection of another call becomes free in time.
    func take(
        while mayContinue: () -> Bool,
        connect: () throws(PostgresError) -> PostgresConnection
    ) throws(PostgresError) -> PostgresConnection {
        let ticket = enqueue()
        defer { state.withLock { state in state.waiting.removeAll { $0 == ticket } } }
        let end = SuspendingClock.now + Self.patience
        var refusal: PostgresError?
        repeat {
            switch turn(of: ticket, mayOpen: refusal == nil && SuspendingClock.now >= end) {
            case .use(let connection) where !connection.hasEndedIdle: return connection
            case .use, .open:
                do throws(PostgresError) {
                    return try connect()
                } catch {
                    guard finish(keeping: nil) else { throw error }
                    refusal = error
                    state.withLock { $0.waiting.append(ticket) }
                }
            case .wait: Self.pause()
            }
        } while mayContinue()
        throw refusal ?? PostgresError(.local, "earlier calls still wait for the server")
    }

    /// Ends the use of a connection, which is kept for the next call if it works.
    ///
    /// - Returns: False if there is no other connection.
    @discardableResult
    func finish(keeping connection: PostgresConnection?) -> Bool {
        let now = SuspendingClock.now
        let kept = connection.flatMap { $0.isUsable ? Idle(connection: $0, since: now) : nil }
        let (closed, hasOthers) = state.withLock { state -> (Idle?, Bool) in
            state.busy -= 1
            let hasOthers = state.busy + state.idle.count > 0
            if let kept, state.clients > 0 { state.idle.append(kept) }
            return (state.removeSurplus(idleSince: now - surplusTime), hasOthers)
        }
        _ = closed
        return hasOthers
    }

    private func enqueue() -> UInt64 {
        state.withLock { state in
            state.lastTicket += 1
            state.waiting.append(state.lastTicket)
            return state.lastTicket
        }
    }

    /// Decides the next step of a waiting call; the connection that it uses or opens then counts as busy.
    private func turn(of ticket: UInt64, mayOpen: Bool) -> Turn {
        state.withLock { state in
            let isFirst = state.waiting.first == ticket
            let idle = isFirst ? state.idle.popLast() : nil
            guard idle != nil || mayOpen || (isFirst && state.busy == 0) else { return .wait }
            state.waiting.removeAll { $0 == ticket }
            state.busy += 1
            return idle.map { .use($0.connection) } ?? .open
        }
    }

    private static func pause() {
        var pause = timespec(tv_sec: 0, tv_nsec: 5_000_000)
        unsafe nanosleep(&pause, nil)
    }
}
