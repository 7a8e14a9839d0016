import GattherdMQTT
import GattherdModel

/// The response to a request: one message, or several in a row.
struct MQTTResponse {
    /// The maximum length of returned correlation data, in bytes.
    static let longestCorrelation = 1024
    /// The attempts on a busy broker before a message is refused.
    private static let maximumAttempts = 3

    private(set) var topic: String
    /// The gateway's topic for such responses; `nil` if the response is published there already.
    private var ownTopic: String?
    /// MQTT 5: the requester's correlation data.
    private(set) var correlation: [UInt8]?
    /// The messages that are not published yet; at least one.
    private var payloads: ArraySlice<[UInt8]>
    private var attempts = 0

    /// Creates the response to a request.
    ///
    /// - Parameters:
    ///   - message: The request.
    ///   - ownTopic: The gateway's topic for the response.
    ///   - outcome: JSON texts to be put under `key`, each in a message of its own, or the error.
    ///   - key: `value` or `data`.
    ///   - transaction: The requester's transaction in the payload: a JSON text.
    ///   - isChosenTopicUsed: True if the response goes to the request's response topic (MQTT 5).
    init(
        to message: BrokerMessage,
        on ownTopic: String,
        _ outcome: Result<[[UInt8]], RequestError>,
        key: String,
        transaction: String?,
        isChosenTopicUsed: Bool
    ) {
        if isChosenTopicUsed, let chosen = message.responseTopic {
            (topic, self.ownTopic, correlation) = (chosen, ownTopic, message.correlation)
        } else {
            (topic, self.ownTopic, correlation) = (ownTopic, nil, nil)
        }
        payloads =
            switch outcome {
            case .success(let parts):
                ArraySlice(
                    parts.map { json in
                        Self.payload("ok", transaction) { writer in
                            writer.key(key)
                            writer.raw(json)
                        }
                    }
                )
            case .failure(let error):
                [
                    Self.payload("error", transaction) { writer in
                        writer.key("error")
                        writer.string(error.description)
                        guard let reason = error.reason else { return }
                        writer.key("reason")
                        writer.string(reason)
                    }
                ]
            }
    }

    /// True if the response goes to a topic that the requester chose.
    var isOnChosenTopic: Bool { ownTopic != nil }
    /// The size in bytes.
    var size: Int { payloads.reduce(topic.utf8.count + (correlation?.count ?? 0)) { $0 + $1.count } }
    var isFinished: Bool { payloads.isEmpty }
    /// The next message.
    var payload: [UInt8] { payloads.first ?? [] }
    /// The number of messages that are not published yet.
    var count: Int { payloads.count }

    /// Removes the next message and returns it as a response of its own.
    mutating func takeFirst() -> MQTTResponse {
        var first = self
        first.payloads = payloads.prefix(1)
        payloads = payloads.dropFirst()
        return first
    }

    /// The same response on the gateway's own topic; `nil` if it is there already.
    var onOwnTopic: MQTTResponse? {
        guard let ownTopic else { return nil }
        var response = self
        (response.topic, response.ownTopic, response.correlation, response.attempts) = (ownTopic, nil, nil, 0)
        return response
    }

    /// The response for another attempt; `nil` after the last one.
    var again: MQTTResponse? {
        var response = self
        response.attempts += 1
        return response.attempts < Self.maximumAttempts ? response : nil
    }

    private static func payload(
        _ status: String,
        _ transaction: String?,
        _ content: (inout JSONWriter) -> Void
    ) -> [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("status")
            writer.string(status)
            content(&writer)
            if let transaction {
                writer.key("transaction")
                writer.raw(transaction.utf8)
            }
            writer.endObject()
        }
    }
}

/// The queue of responses: first in, first out, and bounded.
struct ResponseQueue {
    /// The maximum number of responses: every request in progress, and as many refusals.
    static let maximumCount = 2 * RequestLoad.maximumCount
    /// The maximum size of all responses with topics and correlation data, in bytes.
    static let maximumSize = 8 << 20

    /// Responses that were published before and come first.
    private var returned: [MQTTResponse] = []
    private var responses: [MQTTResponse] = []
    /// The index of the first response in the queue.
    private var first = 0
    /// Responses that wait until the broker is less busy, in order of time.
    private var delayed: [(due: Duration, response: MQTTResponse)] = []
    private var size = 0

    /// True if nothing can be published now.
    var isEmpty: Bool { returned.isEmpty && first == responses.count }
    /// The messages in all responses.
    var messageCount: Int {
        (returned + responses[first...] + delayed.map(\.response)).reduce(0) { $0 + $1.count }
    }

    /// Appends a response; returns false if there is no room.
    mutating func append(_ response: MQTTResponse) -> Bool {
        let count = returned.count + responses.count - first + delayed.count
        guard count < Self.maximumCount, size + response.size <= Self.maximumSize else { return false }
        size += response.size
        responses.append(response)
        return true
    }

    /// Puts published but unacknowledged responses before all others.
    mutating func putBack(_ earlier: [MQTTResponse]) {
        size += earlier.reduce(0) { $0 + $1.size }
        returned.insert(contentsOf: earlier, at: 0)
    }

    /// Returns a response that a busy broker refused, to be published after `due`.
    mutating func putBack(_ response: MQTTResponse, due: Duration) {
        size += response.size
        delayed.append((due, response))
    }

    /// Makes responses available whose pause is over.
    mutating func endPauses(at now: Duration) {
        let due = delayed.prefix { $0.due <= now }
        guard !due.isEmpty else { return }
        returned += due.map(\.response)
        delayed.removeFirst(due.count)
    }

    /// Dequeues the next message; a response of several messages takes turns with the others.
    mutating func next() -> MQTTResponse? {
        if !returned.isEmpty {
            let response = returned.removeFirst()
            size -= response.size
            return response
        }
        guard first < responses.count else { return nil }
        var response = responses[first]
        first += 1
        size -= response.size
        let message = response.takeFirst()
        if first > responses.count / 2 {
            responses.removeFirst(first)
            first = 0
        }
        if !response.isFinished {
            size += response.size
            responses.append(response)
        }
        return message
    }
}

extension ControlValue {
    /// The value in JSON; a trigger has none.
    var json: [UInt8] {
        JSONWriter.bytes { writer in
            switch self {
            case .integer(let number): writer.integer(number)
            case .real(let number): writer.real(number)
            case .boolean(let flag): writer.boolean(flag)
            case .text(let text): writer.string(text)
            case .trigger: writer.null()
            }
        }
    }
}
