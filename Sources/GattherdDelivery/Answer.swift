import GattherdModel

/// What is published to whoever asked.
struct Answer {
    let topic: String
    let payload: [UInt8]
    /// MQTT 5: the asker's own mark.
    let correlation: [UInt8]?

    /// - Parameters:
    ///   - message: The question; MQTT 5's response topic in it is answered to.
    ///   - topic: Where the answer goes otherwise.
    ///   - outcome: JSON to be put under `key`, or why there is none.
    ///   - key: `value` or `data`.
    ///   - transaction: The asker's mark in the payload: a JSON text.
    init(
        to message: BrokerMessage,
        on topic: String,
        _ outcome: Result<[UInt8], JSONError>,
        key: String,
        transaction: String?
    ) {
        let wanted = message.responseTopic.flatMap { Self.isPublishable($0) ? $0 : nil }
        self.topic = wanted ?? topic
        correlation = wanted == nil ? nil : message.correlation
        payload = JSONWriter.octets { writer in
            writer.beginObject()
            Self.write(outcome, key: key, to: &writer)
            if let transaction {
                writer.key("transaction")
                writer.raw(transaction.utf8)
            }
            writer.endObject()
        }
    }

    private static func write(_ outcome: Result<[UInt8], JSONError>, key: String, to writer: inout JSONWriter) {
        writer.key("status")
        switch outcome {
        case .success(let json):
            writer.string("ok")
            writer.key(key)
            writer.raw(json)
        case .failure(let error):
            writer.string("error")
            writer.key("error")
            writer.string(error.description)
        }
    }

    /// A topic name, not a filter: not empty, without wildcards (MQTT 5, "Topic Names and Topic Filters").
    private static func isPublishable(_ topic: String) -> Bool {
        !topic.isEmpty && topic.utf8.count <= 65_535 && !topic.utf8.contains { "+#".utf8.contains($0) }
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
