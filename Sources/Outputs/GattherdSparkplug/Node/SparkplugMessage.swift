/// A message of the edge node.
struct SparkplugMessage: Hashable, Sendable {
    let topic: String
    let payload: SparkplugPayload
    /// The quality of service: 0, except for NDEATH.
    var qos = 0

    /// The message's type, for example `DDATA`.
    var type: String { topic.split(separator: "/").dropFirst(2).first.map(String.init) ?? "" }
    /// The device's name; `nil` for a message of the node.
    var device: String? { topic.split(separator: "/").dropFirst(4).first.map(String.init) }
    var isData: Bool { type == "NDATA" || type == "DDATA" }
    var isNodeBirth: Bool { type == "NBIRTH" }
    var isBirth: Bool { isNodeBirth || type == "DBIRTH" }

    /// The message with its sequence number and nothing else.
    var withoutMetrics: SparkplugMessage {
        var payload = payload
        payload.metrics = []
        return SparkplugMessage(topic: topic, payload: payload, qos: qos)
    }

    /// Returns the aliases of the current values that a shorter message does not have.
    func aliases(missingIn shorter: SparkplugMessage) -> Set<UInt64> {
        let published = Set(shorter.payload.metrics)
        let missing = payload.metrics.filter { !$0.isHistorical && !published.contains($0) }
        return Set(missing.compactMap(\.alias))
    }

    /// The message with null in place of texts, which alone can be long.
    var withoutTexts: SparkplugMessage {
        var payload = payload
        for index in payload.metrics.indices {
            switch payload.metrics[index].value {
            case .string, .bytes: (payload.metrics[index].value, payload.metrics[index].isNull) = (nil, true)
            case .int, .long, .float, .double, .boolean, nil: break
            }
        }
        return SparkplugMessage(topic: topic, payload: payload, qos: qos)
    }
}
