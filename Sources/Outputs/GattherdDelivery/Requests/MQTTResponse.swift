import GattherdMQTT
import GattherdModel

/// What is published to whoever asked: one message, or several in a row.
struct MQTTResponse {
    let topic: String
    /// What is left of it; at least one.
    private var payloads: ArraySlice<[UInt8]>
    /// MQTT 5: the asker's own mark.
    let correlation: [UInt8]?

    /// - Parameters:
    ///   - message: The question; MQTT 5's response topic in it is answered to if it is allowed.
    ///   - topic: Where the answer goes otherwise.
    ///   - outcome: JSON texts to be put under `key`, each in a message of its own, or why there is none.
    ///   - key: `value` or `data`.
    ///   - transaction: The asker's mark in the payload: a JSON text.
    ///   - isAllowed: Tells whether the response topic may be answered to.
    init(
        to message: BrokerMessage,
        on topic: String,
        _ outcome: Result<[[UInt8]], JSONError>,
        key: String,
        transaction: String?,
        isAllowed: (_ responseTopic: String) -> Bool
    ) {
        let wanted = message.responseTopic.flatMap { isAllowed($0) ? $0 : nil }
        self.topic = wanted ?? topic
        correlation = wanted == nil ? nil : message.correlation
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

    /// In octets.
    var size: Int { payloads.reduce(0) { $0 + $1.count } }
    var isFinished: Bool { payloads.isEmpty }

    mutating func takePayload() -> [UInt8] { payloads.popFirst() ?? [] }

    private static func payload(
        _ status: String,
        _ transaction: String?,
        _ content: (inout JSONWriter) -> Void
    ) -> [UInt8] {
        JSONWriter.octets { writer in
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

/// Answers that wait to be published: first in, first out, and bounded.
struct ResponseQueue {
    /// Enough for every request that may run at once, and as many refusals.
    static let maximumCount = 2 * RequestLoad.maximumCount
    /// In octets, of all answers.
    static let maximumSize = 8 << 20

    private var answers: [MQTTResponse] = []
    /// The answers before this one were taken.
    private var first = 0
    private var size = 0

    var isEmpty: Bool { first == answers.count }

    /// False when there is no room.
    mutating func append(_ answer: MQTTResponse) -> Bool {
        guard answers.count - first < Self.maximumCount, size + answer.size <= Self.maximumSize else { return false }
        size += answer.size
        answers.append(answer)
        return true
    }

    /// Takes the next message; an answer of several messages takes turns with the others.
    mutating func next() -> (payload: [UInt8], answer: MQTTResponse)? {
        guard first < answers.count else { return nil }
        var answer = answers[first]
        first += 1
        let payload = answer.takePayload()
        size -= payload.count
        if first > answers.count / 2 {
            answers.removeFirst(first)
            first = 0
        }
        if !answer.isFinished { answers.append(answer) }
        return (payload, answer)
    }
}

extension ControlValue {
    /// The value in JSON; a trigger has none.
    var json: [UInt8] {
        JSONWriter.octets { writer in
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
