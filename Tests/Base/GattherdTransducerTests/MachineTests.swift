import GattherdMachines
import GattherdModel
import GattherdSync
import GattherdTransducer
import Testing

/// The daemon's machines, driven by the runner.
@Suite(.timeLimit(.minutes(1))) struct MachineTests {
    private let clock = VirtualClock()

    /// Runs `body` beside the runner, which is cancelled afterwards.
    private func run<Machine>(
        _ runner: TransducerRunner<Machine>,
        _ body: @Sendable () async throws -> Void
    ) async throws {
        let run = Task { await runner.run() }
        defer { run.cancel() }
        try await body()
    }

    @Test func `the control throttle writes the last value when its interval has passed`() async throws {
        let writes = LatestValue<[ControlValue]>([])
        let throttle = ControlThrottle(interval: .milliseconds(100), isReported: true)
        let runner = TransducerRunner(throttle, clock: clock) { effect in
            switch effect {
            case .answer: return .none
            case .write(let value, let ticket):
                writes.update { $0.append(value) }
                return .send(.written(ticket))
            }
        }
        try await run(runner) {
            for number in 1...3 { try runner.send(.set(.integer(Int64(number)), number)) }
            await clock.advance(to: .milliseconds(100))
            for await output in runner.outputs where output == .integer(3) { break }
            #expect(writes.state == [.integer(3)])
        }
    }

    @Test func `delivery retries after its pause and is finished when it has stopped`() async throws {
        let attempts = LatestValue(0)
        let runner = TransducerRunner(DeliveryMachine(seed: 1), clock: clock) { effect in
            switch effect {
            case .connect(let session):
                attempts.update { $0 += 1 }
                return .send(.failed(session: session, BrokerFault(.unreachable, "refused")))
            default: return .none
            }
        }
        try await run(runner) {
            try runner.send(.start)
            try runner.send(.cursorLoaded(0))
            for await count in attempts.watch() where count == 1 { break }
            clock.set(.seconds(3600))
            for await count in attempts.watch() where count >= 2 { break }
            try runner.send(.stop(drain: .zero))
            for await _ in runner.outputs {}
            #expect(runner.output == .stopped)
            #expect(throws: TransducerFinished()) { try runner.send(.start) }
        }
    }

    @Test func `the supervisor's wake-ups are events that its effects send`() async throws {
        let runner = TransducerRunner(SupervisorMachine(devices: [], seed: 1), clock: clock) { [clock] effect in
            switch effect {
            case .wake(let time):
                .start(EffectID(time)) { send in
                    try? await clock.sleep(until: .init(offset: time), tolerance: nil)
                    send(.wake(at: time))
                }
            default: .none
            }
        }
        try await run(runner) {
            try runner.send(.enrolled(device: "strap", pinned: nil, isHeld: false))
            #expect(runner.output == ["strap": .waiting])
            try runner.send(.enrolled(device: "dial", pinned: nil, isHeld: true))
            #expect(runner.output == ["strap": .waiting, "dial": .held])
        }
    }
}
