import GattherdMQTT
import Testing

@testable import GattherdDelivery

/// The removal below a former base topic, without a broker.
@Suite struct FormerBaseTests {
    private var queue = PublishQueue()
    private var base: FormerBase

    init() {
        let home = HomeAssistant(topics: Topics(base: "new"), gateway: "lab", prefix: "homeassistant", version: "1")
        base = FormerBase("old", home)
        queue.startSession()
        base.startSession(&queue)
    }

    /// Dequeues all states.
    private mutating func states() -> [PublishQueue.State] {
        var states: [PublishQueue.State] = []
        while case .state(let state) = queue.next(isCleanUpAllowed: true, isDeferred: { _ in false }) {
            states.append(state)
        }
        return states
    }

    private mutating func receive(_ topic: String, _ payload: String = "offline", isRetained: Bool = true) {
        let payload = Array(payload.utf8)
        base.receive(
            BrokerMessage(topic: topic, payload: payload, length: payload.count, isRetained: isRetained),
            &queue
        )
    }

    private mutating func finish() -> Bool { base.finish(&queue) }

    /// Answers all searches that wait.
    private mutating func answerAll() -> [PublishQueue.State] {
        let states = states()
        for case .search(let filter) in states { base.answered(filter, isRefused: false) }
        return states
    }

    /// Receives the retained state, and lets the pause for another gateway's start pass.
    private mutating func startClearing() {
        receive("old/bridge/state")
        for _ in 0..<2 { _ = finish() }
    }

    @Test mutating func `another gateway that starts in the pause keeps its messages`() {
        _ = answerAll()
        receive("old/bridge/state")
        #expect(states().isEmpty)
        receive("old/lamp/availability", "online", isRetained: false)
        receive("old/lamp/availability", "online")
        var isDone = finish()
        #expect(!isDone)
        isDone = finish()
        #expect(isDone)
        #expect(!states().contains { if case .clear = $0 { true } else { false } })
    }

    @Test mutating func `another gateway that starts during the removal cancels the waiting removals`() {
        _ = answerAll()
        startClearing()
        _ = answerAll()
        receive("old/lamp/availability")
        receive("old/lamp/connection")
        queue.append(.clear(topic: "new/lamp/connection"))
        receive("old/bridge/state", "offline", isRetained: false)
        receive("old/bridge/state", "online", isRetained: false)
        #expect(
            states().filter { if case .clear = $0 { true } else { false } } == [.clear(topic: "new/lamp/connection")]
        )
    }

    @Test mutating func `a late last will does not stop the removal`() {
        _ = answerAll()
        startClearing()
        receive("old/bridge/state", isRetained: false)
        #expect(states().contains(.clear(topic: "old/bridge/info")))
    }

    @Test mutating func `a search that the broker has not answered is not given up`() {
        _ = states()
        for _ in 0..<100 {
            let isDone = finish()
            #expect(!isDone)
        }
        base.answered("old/bridge/state", isRefused: false)
        var isDone = finish()
        #expect(!isDone, "messages follow the answer")
        isDone = finish()
        #expect(isDone)
    }

    @Test mutating func `a refused search leaves everything for another session`() {
        _ = states()
        base.answered("old/bridge/state", isRefused: true)
        for _ in 0..<10 {
            let isDone = finish()
            #expect(!isDone)
        }
        #expect(states().isEmpty)
    }

    @Test mutating func `availabilities stay until the broker has answered the searches for their devices`() {
        _ = answerAll()
        startClearing()
        _ = answerAll()
        receive("old/lamp/availability")
        #expect(states() == [.search(filter: "old/lamp/#")])
        for _ in 0..<10 { _ = finish() }
        #expect(states().isEmpty)
        base.answered("old/lamp/#", isRefused: false)
        receive("old/lamp/heart_rate")
        #expect(states() == [.clear(topic: "old/lamp/heart_rate")])
        _ = finish()
        _ = finish()
        #expect(states().contains(.clear(topic: "old/lamp/availability")))
    }
}
