/// MQTT 5's numbers for topics, given out until the broker knows as many as it wants to; they last as long as the
/// connection.
///
/// All of a topic's messages have the same QoS, so the one that introduces the number is the first to be sent.
struct TopicAliases {
    /// The highest number that the broker takes.
    var maximum = 0
    private var known: [String: UInt16] = [:]

    /// The topic's number, and whether the broker knows it already; `nil` when none is left.
    func number(of topic: String) -> (number: UInt16, isKnown: Bool)? {
        if let number = known[topic] { return (number, true) }
        return known.count < maximum ? (UInt16(known.count + 1), false) : nil
    }

    /// Notes that a message has introduced the topic's number.
    mutating func introduced(_ topic: String) {
        known[topic] = UInt16(known.count + 1)
    }
}
