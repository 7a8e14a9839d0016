import GattherdBluetooth
import GattherdGATT
import GattherdMachines
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdDaemon

/// Controls that are set without a link.
@Suite(.timeLimit(.minutes(1))) struct ControlWritesTests {
    private static let key = ControlKey(device: "dial", control: "power")

    private func control(
        _ name: String = "power",
        throttle: Duration? = nil,
        echo: String? = nil
    ) -> ProfileAssignment.Control {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        let descriptor = ControlDescriptor(
            name: name,
            kind: .integer(0...5000),
            characteristic: 0xBBBB,
            throttle: throttle,
            echo: echo
        )
        profile.controls = [descriptor]
        let remote = RemoteCharacteristic(
            peripheral: PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 2)),
            service: 0xAAAA,
            uuid: 0xBBBB,
            handle: "one",
            properties: [.notify, .write]
        )
        return ProfileAssignment.Control(profile: profile, index: 0, remote: remote, exchange: nil)
    }

    /// Returns the state with one control of a ready device.
    private func opened(throttle: Duration? = nil) -> ControlWrites {
        var run = ControlWrites(echo: { _, _ in nil })
        _ = run.handle(.open(device: "dial", [control(throttle: throttle)]), at: .zero)
        return run
    }

    /// Returns the answer to a request that is followed by `messages` at the given seconds.
    private func answer(
        _ run: inout ControlWrites,
        _ messages: [(seconds: Int, message: ControlService.Message)]
    ) async -> ControlService.Answer {
        await withCheckedContinuation { caller in
            let request = ControlRequest(device: "dial", control: "power", value: .integer(5))
            for (seconds, message) in [(0, .set(request, caller))] + messages {
                for case .answer(let caller, let answer) in run.handle(message, at: .seconds(seconds)) {
                    caller.resume(returning: answer)
                }
            }
        }
    }

    @Test func `a value whose wait for the link is too long fails because the device is not ready`() async {
        var run = opened()
        _ = run.handle(.close(device: "dial"), at: .zero)
        let answer = await answer(&run, [(9, .event(Self.key, .tick)), (10, .event(Self.key, .tick))])
        #expect(answer == .failure(.notReady(device: "dial")))
    }

    @Test func `an unanswered write times out, also if the link ends meanwhile`() async {
        var run = opened()
        let failure = ControlService.Message.event(Self.key, .failed(1, .timedOut, retryable: false))
        #expect(await answer(&run, [(1, .close(device: "dial")), (2, failure)]) == .failure(.timedOut))
    }

    @Test func `a control is unknown once its device was ready without it`() async {
        var run = ControlWrites(echo: { _, _ in nil })
        #expect(await answer(&run, []) == .failure(.notReady(device: "dial")))
        _ = run.handle(.open(device: "dial", []), at: .zero)
        #expect(await answer(&run, []) == .failure(.noSuchControl("power")))
        _ = run.handle(.remove(device: "dial"), at: .zero)
        #expect(await answer(&run, []) == .failure(.notReady(device: "dial")))
    }

    @Test func `a control that its device no longer has is unknown, and may come back`() async {
        var run = opened()
        _ = run.handle(.open(device: "dial", []), at: .zero)
        #expect(await answer(&run, [(10, .event(Self.key, .tick))]) == .failure(.noSuchControl("power")))
        _ = run.handle(.open(device: "dial", [control()]), at: .zero)
        #expect(await answer(&run, [(0, .event(Self.key, .written(1)))]) == .success(.integer(5)))
    }

    @Test func `a device that is ready again with another throttle uses it, and keeps its requests`() async {
        var run = opened(throttle: .seconds(5))
        _ = run.handle(.open(device: "dial", [control()]), at: .zero)
        let late = (20, ControlService.Message.event(Self.key, .tick))
        #expect(await answer(&run, [(0, .event(Self.key, .written(1))), late]) == .success(.integer(5)))
        _ = run.handle(.close(device: "dial"), at: .zero)
        let opened = (1, ControlService.Message.open(device: "dial", [control(throttle: .seconds(3))]))
        #expect(await answer(&run, [opened, (2, .event(Self.key, .written(2))), late]) == .success(.integer(5)))
    }

    @Test func `a value that one control reads from the echo is known to the others with that echo`() async {
        let reported = Locked<SampleValue?>(nil)
        var run = ControlWrites(echo: { _, _ in reported.withLock { $0.take() } })
        let controls = [control(echo: "state"), control("level", echo: "state")]
        _ = run.handle(.open(device: "dial", controls), at: .zero)
        #expect(await answer(&run, [(0, .event(Self.key, .written(1)))]) == .success(.integer(5)))
        reported.withLock { $0 = .integer(0) }
        _ = run.handle(.event(ControlKey(device: "dial", control: "level"), .tick), at: .zero)
        let failure = ControlService.Message.event(Self.key, .failed(2, .timedOut, retryable: false))
        #expect(await answer(&run, [(0, failure)]) == .failure(.timedOut))
    }

    @Test func `a waiting value is written when the device becomes ready`() async {
        var run = opened()
        _ = run.handle(.close(device: "dial"), at: .zero)
        let answer = await answer(&run, [(1, .event(Self.key, .ready)), (2, .event(Self.key, .written(1)))])
        #expect(answer == .success(.integer(5)))
    }

    @Test func `a waiting value is not written to another device of the same name`() async {
        var run = opened()
        _ = run.handle(.close(device: "dial"), at: .zero)
        #expect(await answer(&run, [(1, .remove(device: "dial"))]) == .failure(.notReady(device: "dial")))
        let actions = run.handle(.open(device: "dial", [control()]), at: .seconds(2))
        #expect(actions.isEmpty)
    }

    @Test func `a waiting value is written when its device returns on another adapter`() async {
        var run = opened()
        _ = run.handle(.close(device: "dial"), at: .zero)
        let messages: [(seconds: Int, message: ControlService.Message)] = [
            (1, .remove(device: "dial", isMoving: true)), (2, .open(device: "dial", [control()])),
            (3, .event(Self.key, .written(1))),
        ]
        #expect(await answer(&run, messages) == .success(.integer(5)))
    }

    @Test func `a burst answers every request, writes the last value and needs one timer`()
        async throws
    {
        let callers = Locked<[CheckedContinuation<ControlService.Answer, Never>]>([])
        try await withThrowingTaskGroup(of: ControlService.Answer.self) { group in
            for _ in 0..<1001 {
                group.addTask { await withCheckedContinuation { caller in callers.withLock { $0.append(caller) } } }
            }
            try await eventually { callers.withLock { $0.count } == 1001 }
            var run = opened(throttle: .milliseconds(100))
            var (wakes, writes) = (0, [ControlValue]())
            func handle(_ message: ControlService.Message, at milliseconds: Int) {
                for action in run.handle(message, at: .milliseconds(milliseconds)) {
                    switch action {
                    case .answer(let caller, let answer): caller.resume(returning: answer)
                    case .wake: wakes += 1
                    case .write(_, _, let value, _, let ticket):
                        writes.append(value)
                        handle(.event(Self.key, .written(ticket)), at: milliseconds + 500)
                    }
                }
            }
            for (number, caller) in callers.withLock({ $0 }).enumerated() {
                let request = ControlRequest(device: "dial", control: "power", value: .integer(Int64(number)))
                handle(.set(request, caller), at: number / 20)
            }
            handle(.event(Self.key, .tick), at: 99)
            handle(.event(Self.key, .tick), at: 100)
            #expect(writes == [.integer(1000)])
            #expect(wakes == 2)
            var answers: [ControlService.Answer: Int] = [:]
            for try await answer in group { answers[answer, default: 0] += 1 }
            #expect(answers == [.failure(.superseded): 1000, .success(.integer(1000)): 1])
        }
    }

    @Test(arguments: [
        (BluetoothError.Kind.timedOut, ControlError.timedOut), (.notConnected, .notReady(device: "dial")),
        (.adapterUnavailable, .notReady(device: "dial")), (.att(3), .refused("no")), (.notPermitted, .refused("no")),
    ])
    func `only an answer of the device counts as a refusal`(kind: BluetoothError.Kind, error: ControlError) {
        #expect(ControlError(BluetoothError(kind, "no"), of: "dial") == error)
    }
}
