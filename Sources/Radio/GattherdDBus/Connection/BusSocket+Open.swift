import GattherdSync

extension BusSocket {
    /// Connects on a thread of its own, so that a bus that hangs blocks nothing.
    static func open(
        _ address: DBusAddress,
        within limit: Duration,
        on loop: EventLoop
    ) async throws(DBusError) -> BusSocket {
        let attempt = Attempt()
        let isStarted = NamedThread.start(name: "dbus-open") {
            do throws(DBusError) {
                attempt.finish(.success(try BusSocket.connected(to: address.description, within: limit)))
            } catch {
                attempt.finish(.failure(error))
            }
        }
        guard isStarted else { throw .invalid("there is no room for another thread") }
        loop.execute {
            loop.schedule(after: limit) { [weak attempt] in
                attempt?.finish(.failure(.timeout("connect to \(address)", after: limit)))
            }
        }
        return try await attempt.outcome().get()
    }

    /// The first of success, failure, deadline and cancellation; a connection that comes later is closed.
    private final class Attempt: Sendable {
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
