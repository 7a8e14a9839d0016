import GattherdTransducer

/// A screen with one state and one button, whose meaning depends on the state.
struct LinkScreen: Transducer {
    enum Event {
        case buttonPressed, connected
        case lost(String)
        case closed
    }
    enum Effect: Equatable { case connect, cancelConnecting, disconnect }

    enum State: Equatable {
        case disconnected(error: String?)
        case connecting
        case ready
        case closed
    }

    struct Output: Equatable {
        let title: String
        let button: String
    }

    private(set) var state = State.disconnected(error: nil)

    var isFinished: Bool { state == .closed }

    var output: Output {
        switch state {
        case .disconnected(let error): Output(title: error ?? "Not connected", button: "Connect")
        case .connecting: Output(title: "Connecting …", button: "Cancel")
        case .ready: Output(title: "Connected", button: "Disconnect")
        case .closed: Output(title: "", button: "")
        }
    }

    mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        switch (state, event) {
        case (.disconnected, .buttonPressed): go(to: .connecting, .connect)
        case (.connecting, .buttonPressed): go(to: .disconnected(error: nil), .cancelConnecting)
        case (.ready, .buttonPressed): go(to: .disconnected(error: nil), .disconnect)
        case (.connecting, .connected): go(to: .ready)
        case (.connecting, .lost(let error)), (.ready, .lost(let error)): go(to: .disconnected(error: error))
        case (_, .closed): go(to: .closed)
        default: []
        }
    }

    private mutating func go(to next: State, _ effects: Effect...) -> [Effect] {
        state = next
        return effects
    }
}

@MainActor func screen(
    connect: @escaping @Sendable () async throws -> Void,
    disconnect: @escaping @Sendable () async -> Void
) -> TransducerModel<LinkScreen> {
    let runner = TransducerRunner(LinkScreen()) { effect in
        switch effect {
        case .connect:
            .start("connect") { send in
                do {
                    try await connect()
                    send(.connected)
                } catch {
                    send(.lost("\(error)"))
                }
            }
        case .cancelConnecting: .cancel("connect")
        case .disconnect: .start("disconnect") { _ in await disconnect() }
        }
    }
    return TransducerModel(runner)
}
