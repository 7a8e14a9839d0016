import GattherdSync
import Glibc

/// The address of a bus.
public struct DBusAddress: Hashable, Sendable, CustomStringConvertible {
    /// In D-Bus's own syntax, for example `unix:path=/run/dbus/system_bus_socket`.
    public let description: String

    private init(_ text: String) {
        description = text
    }

    /// A literal address.
    public static func address(_ text: String) -> DBusAddress { DBusAddress(text) }

    /// `DBUS_SYSTEM_BUS_ADDRESS`, else the usual socket.
    public static var system: DBusAddress {
        environment("DBUS_SYSTEM_BUS_ADDRESS", else: "unix:path=/run/dbus/system_bus_socket")
    }

    /// `DBUS_SESSION_BUS_ADDRESS`, else the socket in this user's run-time folder.
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
    /// Connects on a thread of its own, so that a bus that hangs blocks nothing.
    func connect(within limit: Duration, on loop: EventLoop) async throws(DBusError) -> BusSocket {
        let attempt = ConnectionAttempt()
        let isStarted = NamedThread.start(name: "dbus-open") {
            do throws(DBusError) {
                attempt.finish(.success(try BusSocket.connected(to: description, within: limit)))
            } catch {
                attempt.finish(.failure(error))
            }
        }
        guard isStarted else { throw .invalid("there is no room for another thread") }
        loop.execute {
            loop.schedule(after: limit) { [weak attempt] in
                attempt?.finish(.failure(.timeout("connect to \(description)", after: limit)))
            }
        }
        return try await attempt.outcome().get()
    }

    /// The first of success, failure, deadline and cancellation; a connection that comes later is closed.
    private final class ConnectionAttempt: Sendable {
        typealias Outcome = Result<BusSocket, DBusError>

        private struct State: Sendable {
            var outcome: Outcome?
            var waiter: CheckedContinuation<Outcome, Never>?
        }

        private let state = Locked(State())

        func finish(_ outcome: Outcome) {
            let waiter = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
                guard state.outcome == nil else { return nil }
                state.outcome = outcome
                return state.waiter.take()
            }
            waiter?.resume(returning: outcome)
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
                finish(.failure(.cancelled))
            }
        }
    }
}
