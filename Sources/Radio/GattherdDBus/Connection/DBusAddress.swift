import GattherdSync
import Glibc

/// The address of a bus.
public struct DBusAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in D-Bus's own syntax, for example `unix:path=/run/dbus/system_bus_socket`.
    public let description: String

    private init(_ text: String) {
        description = text
    }

    /// A literal address.
    public static func address(_ text: String) -> DBusAddress { DBusAddress(text) }

    /// The system bus: `DBUS_SYSTEM_BUS_ADDRESS`, else the usual socket.
    public static var system: DBusAddress {
        environment("DBUS_SYSTEM_BUS_ADDRESS", else: "unix:path=/run/dbus/system_bus_socket")
    }

    /// The session bus: `DBUS_SESSION_BUS_ADDRESS`, else the socket in this user's run-time folder.
    public static var session: DBusAddress {
        environment("DBUS_SESSION_BUS_ADDRESS", else: "unix:path=/run/user/\(getuid())/bus")
    }

    private static func environment(_ name: String, else fallback: String) -> DBusAddress {
        guard let value = unsafe getenv(name) else { return DBusAddress(fallback) }
        let text = unsafe String(cString: value)
        return DBusAddress(text.isEmpty ? fallback : text)
    }
}

extension DBusAddress {
    /// The threads whose attempts were given up and that still wait for their bus.
    private static let hangingThreads = LatestValue<[DBusAddress: Int]>([:])

    /// The number of threads that still wait for this bus although their attempts were given up.
    var hangingThreads: Int { Self.hangingThreads.state[self] ?? 0 }

    /// Connects on a thread of its own, so that a bus that hangs blocks nothing.
    ///
    /// While the thread of an earlier attempt hangs, no other is started.
    func connect(within limit: Duration, on loop: EventLoop) async throws(DBusError) -> BusSocket {
        let late = DBusError.timeout("connect to \(description)", after: limit)
        let deadline = SuspendingClock.now.advanced(by: limit)
        guard await waitForThreads(within: limit) else { throw Task.isCancelled ? .cancelled : late }
        let limit = max(.zero, deadline - SuspendingClock.now)
        let attempt = ConnectionAttempt(self)
        let isStarted = NamedThread.start(name: "dbus-open") {
            do throws(DBusError) {
                attempt.end(.success(try BusSocket.connected(to: description, within: limit)))
            } catch {
                attempt.end(.failure(error))
            }
        }
        guard isStarted else { throw .invalid("no thread can be started to connect") }
        loop.execute {
            loop.schedule(after: limit) { [weak attempt] in attempt?.giveUp(late) }
        }
        return try await attempt.outcome().get()
    }

    /// Waits until no thread hangs; returns false at the limit, or if the task is cancelled.
    private func waitForThreads(within limit: Duration) async -> Bool {
        guard hangingThreads > 0 else { return true }
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await counts in Self.hangingThreads.watch() where counts[self] == nil { return true }
                return false
            }
            group.addTask {
                try? await Task.sleep(for: limit, clock: .loop)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }

    private func countHangingThreads(_ change: Int) {
        Self.hangingThreads.update { counts in
            let count = (counts[self] ?? 0) + change
            counts[self] = count == 0 ? nil : count
        }
    }

    /// The first of success, failure, deadline and cancellation; a connection that comes later is closed.
    private final class ConnectionAttempt: Sendable {
        typealias Outcome = Result<BusSocket, DBusError>

        private struct State: Sendable {
            var outcome: Outcome?
            var waiter: CheckedContinuation<Outcome, Never>?
        }

        private let address: DBusAddress
        private let state = Locked(State())

        init(_ address: DBusAddress) {
            self.address = address
        }

        /// Records the outcome of the thread, which ends.
        func end(_ outcome: Outcome) {
            if !finish(outcome, isThreadRunning: false) { address.countHangingThreads(-1) }
        }

        /// Ends the wait for the thread, which goes on.
        func giveUp(_ error: DBusError) {
            _ = finish(.failure(error), isThreadRunning: true)
        }

        /// Sets the outcome; returns false if there is one already.
        ///
        /// A thread that hangs is counted before the waiter continues.
        private func finish(_ outcome: Outcome, isThreadRunning: Bool) -> Bool {
            let (isFirst, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Outcome, Never>?) in
                guard state.outcome == nil else { return (false, nil) }
                state.outcome = outcome
                return (true, state.waiter.take())
            }
            if isFirst, isThreadRunning { address.countHangingThreads(1) }
            waiter?.resume(returning: outcome)
            return isFirst
        }

        func outcome() async -> Outcome {
            await withTaskCancellationHandler {
                await withCheckedContinuation { waiter in
                    let outcome = state.withLock { state -> Outcome? in
                        if state.outcome == nil { state.waiter = waiter }
                        return state.outcome
                    }
                    if let outcome { waiter.resume(returning: outcome) }
                }
            } onCancel: {
                giveUp(.cancelled)
            }
        }
    }
}
