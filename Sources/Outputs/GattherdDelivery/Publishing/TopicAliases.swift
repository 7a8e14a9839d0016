/// The topic aliases of MQTT 5, assigned up to the broker's maximum and valid for one connection.
///
/// All messages of a topic have the same QoS, so the message that introduces the alias is sent first.
struct TopicAliases {
    /// The highest alias that the broker accepts.
    var maximum = 0
    private var known: [String: UInt16] = [:]

    /// The topic's alias, and whether the broker knows it already; `nil` if none is left.
    func number(of topic: String) -> (number: UInt16, isKnown: Bool)? {
        if let number = known[topic] { return (number, true) }
        return known.count < maximum ? (UInt16(known.count + 1), false) : nil
    }

    /// Records that a message has introduced the topic's alias.
    mutating func introduced(_ topic: String) {
        known[topic] = UInt16(known.count + 1)
    }
}
