import GattherdTransducer

struct Counter: Transducer {
    enum Event { case increment, decrement, reset, stop }
    enum Effect: Equatable { case save(Int) }

    private(set) var output = 0
    private(set) var isFinished = false

    mutating func handle(_ event: Event, at now: Duration) -> [Effect] {
        switch event {
        case .increment: output += 1
        case .decrement: output -= 1
        case .reset: output = 0
        case .stop: isFinished = true
        }
        return [.save(output)]
    }
}

func count(saving: @escaping @Sendable (Int) async -> Void) async -> Int {
    let runner = TransducerRunner(Counter()) { effect in
        switch effect {
        case .save(let value): .start("save") { _ in await saving(value) }
        }
    }
    async let last = runner.run()
    do {
        try runner.send(.increment)
        try runner.send(.increment)
        try runner.send(.stop)
        try runner.send(.increment)
    } catch {
        print(error)  // the transducer has finished and accepts no more events
    }
    return await last
}
