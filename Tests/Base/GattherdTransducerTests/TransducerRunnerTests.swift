import GattherdSync
import Observation
import Testing

@testable import GattherdTransducer
@testable import TransducerExamples

/// A transducer whose events are its effects, and whose output is the list of its reports.
private struct Script: Transducer {
    enum Event {
        case order(Effect)
        case report(String)
        case wait(until: Duration)
        case tick
        case stop
    }

    enum Effect {
        case start(String, id: String?)
        case cancel(String)
        case send(String)
    }

    private(set) var output: [String] = []
    private(set) var isFinished = false
    private(set) var deadline: Duration?
    static var tick: Event? { .tick }

    mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .order(let effect): return [effect]
        case .report(let text): output.append(text)
        case .wait(let time): deadline = time
        case .tick:
            output.append("tick at \(now)")
            deadline = nil
        case .stop: isFinished = true
        }
        return []
    }
}

@Suite(.timeLimit(.minutes(1))) struct TransducerRunnerTests {
    private let clock = VirtualClock()
    /// The names of the running tasks, which wait for their cancellation.
    private let running = LatestValue<Set<String>>([])

    private func makeRunner() -> TransducerRunner<Script> {
        TransducerRunner(Script(), clock: clock) { [running] effect in
            switch effect {
            case .send(let text): .send(.report(text))
            case .cancel(let id): .cancel(EffectID(id))
            case .start(let name, let id):
                .start(id.map { EffectID($0) }) { send in
                    running.update { $0.insert(name) }
                    let (cancellation, continuation) = AsyncStream.makeStream(of: Void.self)
                    for await _ in cancellation {}
                    continuation.finish()
                    send(.report("\(name) ended"))
                    running.update { $0.remove(name) }
                }
            }
        }
    }

    private func isRunning(_ names: Set<String>) async {
        for await now in running.watch() where now == names { return }
    }

    private func withRunning<Value>(_ body: (TransducerRunner<Script>) async throws -> Value) async throws -> Value {
        let runner = makeRunner()
        async let end = runner.run()
        let value = try await body(runner)
        try? runner.send(.stop)
        _ = await end
        return value
    }

    @Test func `a counter counts, finishes and then refuses events`() async {
        let saved = LatestValue<[Int]>([])
        let last = await count { value in saved.update { $0.append(value) } }
        #expect(last == 2)
        // The task of the last event's effect is not started.
        #expect(saved.state.contains(2))
    }

    @Test func `the output is current when send returns`() throws {
        let runner = TransducerRunner(Counter()) { _ in .none }
        try runner.send(.increment)
        try runner.send(.increment)
        #expect(runner.output == 2)
        try runner.send(.stop)
        #expect(runner.isFinished)
        #expect(throws: TransducerFinished()) { try runner.send(.increment) }
        #expect(runner.output == 2)
    }

    @Test func `the sequence of outputs begins with the current output and ends with the runner`() async throws {
        let runner = TransducerRunner(Counter()) { _ in .none }
        try runner.send(.increment)
        var outputs = runner.outputs.makeAsyncIterator()
        #expect(await outputs.next() == 1)
        try runner.send(.reset)
        #expect(await outputs.next() == 0)
        async let last = runner.run()
        try runner.send(.stop)
        #expect(await last == 0)
        #expect(await outputs.next() == nil)
    }

    @Test func `an event sent by an effect is handled next`() async throws {
        try await withRunning { runner in
            try runner.send(.order(.send("done")))
            for await output in runner.outputs where output == ["done"] { break }
        }
    }

    @Test func `a new task replaces the running one of the same identifier`() async throws {
        try await withRunning { runner in
            try runner.send(.order(.start("first", id: "a")))
            await isRunning(["first"])
            try runner.send(.order(.start("other", id: "b")))
            await isRunning(["first", "other"])
            try runner.send(.order(.start("second", id: "a")))
            await isRunning(["second", "other"])
            #expect(runner.output == [])
        }
        #expect(running.state == [])
    }

    @Test func `events of a cancelled task are dropped`() async throws {
        try await withRunning { runner in
            try runner.send(.order(.start("task", id: "a")))
            await isRunning(["task"])
            try runner.send(.order(.cancel("a")))
            await isRunning([])
            #expect(runner.output == [])
        }
    }

    @Test func `the end of the run cancels and awaits all tasks`() async throws {
        try await withRunning { runner in
            try runner.send(.order(.start("named", id: "a")))
            try runner.send(.order(.start("nameless", id: nil)))
            await isRunning(["named", "nameless"])
        }
        #expect(running.state == [])
    }

    @Test func `cancelling the run ends the runner`() async throws {
        let runner = makeRunner()
        try runner.send(.order(.start("task", id: nil)))
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await runner.run() }
            await isRunning(["task"])
            group.cancelAll()
        }
        #expect(running.state == [])
        #expect(runner.isFinished)
        #expect(throws: TransducerFinished()) { try runner.send(.report("late")) }
    }

    @Test func `a second run waits for the first`() async throws {
        let runner = makeRunner()
        async let first = runner.run()
        async let second = runner.run()
        try runner.send(.report("a"))
        try runner.send(.stop)
        #expect(await (first, second) == (["a"], ["a"]))
    }

    @Test func `the tick comes at the deadline`() async throws {
        try await withRunning { runner in
            try runner.send(.wait(until: .seconds(5)))
            await clock.advance(to: .seconds(5))
            for await output in runner.outputs where output == ["tick at 5.0 seconds"] { break }
        }
    }

    @Test func `a changed deadline replaces the timer`() async throws {
        try await withRunning { runner in
            try runner.send(.wait(until: .seconds(5)))
            try runner.send(.wait(until: .seconds(9)))
            await clock.advance(to: .seconds(9))
            for await output in runner.outputs where !output.isEmpty { break }
            #expect(runner.output == ["tick at 9.0 seconds"])
        }
    }

    @Test func `identifiers are equal if their types and values are`() {
        #expect(EffectID("a") == "a")
        #expect(EffectID(1) == EffectID(1))
        #expect(EffectID(1) != EffectID("1"))
        #expect(Set([EffectID(1), EffectID(1), EffectID(2)]).count == 2)
    }

    @MainActor @Test func `the model of a view changes with the runner`() async throws {
        let connecting = LatestValue(false)
        let model = screen(
            connect: {
                connecting.set(true)
                try await Task.sleep(for: .seconds(600))
            },
            disconnect: {}
        )
        let changes = LatestValue(0)
        withObservationTracking {
            _ = model.output
        } onChange: {
            changes.update { $0 += 1 }
        }
        async let end: Void = model.run()
        #expect(model.output.button == "Connect")
        try model.send(.buttonPressed)
        #expect(changes.state == 1)
        #expect(model.output == .init(title: "Connecting …", button: "Cancel"))
        for await isConnecting in connecting.watch() where isConnecting { break }
        try model.send(.buttonPressed)
        #expect(model.output == .init(title: "Not connected", button: "Connect"))
        try model.send(.closed)
        await end
        #expect(model.isFinished)
        #expect(throws: TransducerFinished()) { try model.send(.buttonPressed) }
    }

    @MainActor @Test func `the model shows the error of an effect`() async throws {
        struct OutOfRange: Error, CustomStringConvertible { let description = "out of range" }
        let model = screen(connect: { throw OutOfRange() }, disconnect: {})
        async let end: Void = model.run()
        try model.send(.buttonPressed)
        for await output in model.runner.outputs where output.title == "out of range" { break }
        try model.send(.closed)
        await end
    }
}
