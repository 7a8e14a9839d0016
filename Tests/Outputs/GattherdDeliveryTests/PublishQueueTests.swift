import GattherdMQTT
import Testing

@testable import GattherdDelivery

@Suite struct PublishQueueTests {
    private static func response(
        _ topic: String = "own",
        correlation: Int = 0,
        to chosen: String? = nil
    ) -> MQTTResponse {
        var message = BrokerMessage(topic: "request", payload: [], length: 0, isRetained: false)
        message.responseTopic = chosen
        message.correlation = Array(repeating: 0, count: correlation)
        return MQTTResponse(
            to: message,
            on: topic,
            .success([[0x31]]),
            key: "value",
            transaction: nil,
            isChosenTopicUsed: chosen != nil
        )
    }

    /// A queue during a session.
    private static var openQueue: PublishQueue {
        var queue = PublishQueue()
        queue.startSession()
        return queue
    }

    private static func next(_ queue: inout PublishQueue) -> PublishQueue.Item? {
        queue.next(isCleanUpAllowed: true) { _ in false }
    }

    @Test func `correlation data and topics count against the bound of the responses`() {
        var queue = ResponseQueue()
        var count = 0
        while queue.append(Self.response(correlation: 65_000, to: "chosen")) { count += 1 }
        #expect(count > 100 && count * 65_000 <= ResponseQueue.maximumSize)
        while queue.next() != nil {}
        let hasRoomAgain = queue.append(Self.response(correlation: 65_000, to: "chosen"))
        #expect(hasRoomAgain)
    }

    @Test func `clean-up is bounded, and is repeated when the rest is done`() {
        var queue = Self.openQueue
        for number in 0..<100_000 { queue.append(.clear(topic: "\(number)")) }
        let isDoneEarly = queue.takeIncompleteCleanUp()
        #expect(!queue.hasCleanUpRoom && !isDoneEarly)
        var count = 0
        while Self.next(&queue) != nil { count += 1 }
        #expect(count == PublishQueue.maximumCleanUps)
        let answers = [queue.takeIncompleteCleanUp(), queue.takeIncompleteCleanUp()]
        #expect(answers == [true, false])
    }

    @Test func `a state that is queued again is published last`() {
        var queue = Self.openQueue
        for state in [.availability(device: "a"), .info, .availability(device: "a")] as [PublishQueue.State] {
            queue.append(state)
        }
        var states: [PublishQueue.State] = []
        while case .state(let state) = Self.next(&queue) { states.append(state) }
        #expect(states == [.info, .availability(device: "a")])
    }

    @Test func `responses are published before clean-up, and before the last state`() {
        var queue = Self.openQueue
        for state in [.clear(topic: "a"), .offline, .info] as [PublishQueue.State] { queue.append(state) }
        _ = queue.responses.append(Self.response())
        guard case .state(.info) = Self.next(&queue), case .response = Self.next(&queue),
            case .state(.offline) = Self.next(&queue), case .state(.clear("a")) = Self.next(&queue)
        else {
            Issue.record("another order")
            return
        }
    }

    @Test func `responses take turns with states, however many there are`() {
        var queue = Self.openQueue
        for number in 0..<10 {
            queue.append(.availability(device: "\(number)"))
            _ = queue.responses.append(Self.response())
        }
        var kinds = ""
        while let item = Self.next(&queue) {
            if case .state = item { kinds += "s" } else { kinds += "r" }
        }
        #expect(kinds == String(repeating: "sr", count: 10))
    }

    @Test func `responses without an acknowledgement are the first of the next session`() {
        var queue = PublishQueue()
        for topic in ["a", "b", "c"] { _ = queue.responses.append(Self.response(topic)) }
        let sent = [queue.responses.next(), queue.responses.next()].compactMap(\.self)
        queue.endSession(unanswered: sent)
        var topics: [String] = []
        while let response = queue.responses.next() { topics.append(response.topic) }
        #expect(topics == ["a", "b", "c"])
    }

    @Test func `states are queued during a session only`() {
        var queue = PublishQueue()
        queue.append(.info)
        queue.append(.clear(topic: "a"))
        #expect(Self.next(&queue).map { _ in true } == nil)
        queue.startSession()
        queue.append(.info)
        queue.endSession(unanswered: [])
        queue.startSession()
        #expect(Self.next(&queue).map { _ in true } == nil, "the next session starts with all states")
    }

    @Test func `a busy broker gets a response three times`() throws {
        var response: MQTTResponse? = Self.response(to: "chosen")
        var attempts = 0
        while let current = response {
            attempts += 1
            response = current.again
        }
        #expect(attempts == 3)
        let own = try #require(Self.response("own", correlation: 4, to: "chosen").onOwnTopic)
        #expect(own.topic == "own" && own.correlation == nil && own.onOwnTopic == nil)
    }
}
