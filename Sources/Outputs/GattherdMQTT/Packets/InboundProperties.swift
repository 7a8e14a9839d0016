/// The kinds of packets, as far as their allowed properties differ.
struct PropertyPlaces: OptionSet {
    let rawValue: UInt8

    static let connectAnswer = Self(rawValue: 1)
    static let publish = Self(rawValue: 2)
    /// PUBACK, SUBACK and UNSUBACK.
    static let acknowledgement = Self(rawValue: 4)
    static let disconnect = Self(rawValue: 8)
    static let all: Self = [.connectAnswer, .publish, .acknowledgement, .disconnect]
}

/// The properties of a received packet (MQTT 5, section 2.2.2); unused properties are only validated.
///
/// A broker forwards some properties of a message as its publisher wrote them, and not all brokers validate them. Their
/// values are no violation by the broker. Otherwise one retained message could end every session.
struct InboundProperties {
    var receiveMaximum: UInt16?
    var maximumQoS: UInt8?
    var canRetain: UInt8?
    var takesWildcards: UInt8?
    var maximumPacket: UInt32?
    var topicAliasMaximum: UInt16?
    var serverKeepalive: UInt16?
    var reasonText: String?
    var serverReference: String?
    var responseTopic: String?
    var correlation: [UInt8]?
    var topicAlias: UInt16?

    private enum Kind {
        case byte
        case word
        case long
        case variableInteger
        case text
        case pair
        case binary
    }

    private struct Rule {
        let name: StaticString
        let kind: Kind
        let places: PropertyPlaces
    }

    /// Reads the length of the properties and all of them.
    init(_ reader: inout PacketReader, in place: PropertyPlaces) throws(MQTTViolation) {
        let length = try reader.variableInteger()
        try self.init(reader.bytes(length), of: reader.packet, in: place)
    }

    /// Reads properties without their length.
    init(_ bytes: ArraySlice<UInt8>, of packet: StaticString, in place: PropertyPlaces) throws(MQTTViolation) {
        var reader = PacketReader(bytes, of: packet)
        var seen: UInt64 = 0
        while !reader.isAtEnd {
            let identifier = try reader.variableInteger()
            guard let rule = Self.rule(identifier), rule.places.contains(place) else {
                throw .malformed("\(packet) has the property \(identifier), which it cannot have")
            }
            let isRepeatable = identifier == 0x26 || identifier == 0x0B
            guard isRepeatable || seen & 1 << UInt64(identifier) == 0 else {
                throw .protocolError("\(packet) has the property '\(rule.name)' twice")
            }
            seen |= 1 << UInt64(identifier)
            try read(identifier, rule, &reader, in: place)
        }
    }

    private mutating func read(
        _ identifier: Int,
        _ rule: Rule,
        _ reader: inout PacketReader,
        in place: PropertyPlaces
    ) throws(MQTTViolation) {
        switch rule.kind {
        case .byte: try keep(reader.byte(), identifier, rule, reader.packet)
        case .word: try keep(reader.word(), identifier, rule, reader.packet)
        case .long:
            let value = try reader.long()
            guard identifier == 0x27 else { return }
            guard value > 0 else { throw Self.outOfRange(rule, reader.packet) }
            maximumPacket = value
        case .variableInteger:
            guard try reader.variableInteger() > 0 else { throw Self.outOfRange(rule, reader.packet) }
        case .text: keep(try Self.text(&reader, in: place), identifier)
        case .pair:
            _ = try Self.text(&reader, in: place)
            _ = try Self.text(&reader, in: place)
        case .binary:
            let bytes = try reader.binary()
            if identifier == 0x09 { correlation = Array(bytes) }
        }
    }

    /// Reads a text; that of a message is empty if its publisher wrote no UTF-8.
    private static func text(_ reader: inout PacketReader, in place: PropertyPlaces) throws(MQTTViolation) -> String {
        guard place == .publish else { return try reader.text() }
        let bytes = try reader.binary()
        return String(validating: bytes, as: UTF8.self) ?? ""
    }

    /// Stores a property of one byte; all of them are flags.
    ///
    /// The payload's format is not checked, because the publisher wrote it.
    private mutating func keep(
        _ flag: UInt8,
        _ identifier: Int,
        _ rule: Rule,
        _ packet: StaticString
    ) throws(MQTTViolation) {
        guard flag <= 1 || identifier == 0x01 else { throw Self.outOfRange(rule, packet) }
        switch identifier {
        case 0x24: maximumQoS = flag
        case 0x25: canRetain = flag
        case 0x28: takesWildcards = flag
        default: break
        }
    }

    private mutating func keep(
        _ word: UInt16,
        _ identifier: Int,
        _ rule: Rule,
        _ packet: StaticString
    ) throws(MQTTViolation) {
        switch identifier {
        case 0x13: serverKeepalive = word
        case 0x21 where word == 0: throw Self.outOfRange(rule, packet)
        case 0x21: receiveMaximum = word
        case 0x22: topicAliasMaximum = word
        default: topicAlias = word
        }
    }

    private mutating func keep(_ text: String, _ identifier: Int) {
        switch identifier {
        case 0x08: responseTopic = text
        case 0x1C: serverReference = text
        case 0x1F: reasonText = text
        default: break
        }
    }

    private static func outOfRange(_ rule: Rule, _ packet: StaticString) -> MQTTViolation {
        .protocolError("\(packet) has a property '\(rule.name)' of a value that is not allowed")
    }

    /// The rules of table 2-4 that concern a client; this client never starts an authentication exchange.
    private static func rule(_ identifier: Int) -> Rule? {
        switch identifier {
        case 0x01: Rule(name: "Payload Format Indicator", kind: .byte, places: .publish)
        case 0x02: Rule(name: "Message Expiry Interval", kind: .long, places: .publish)
        case 0x03: Rule(name: "Content Type", kind: .text, places: .publish)
        case 0x08: Rule(name: "Response Topic", kind: .text, places: .publish)
        case 0x09: Rule(name: "Correlation Data", kind: .binary, places: .publish)
        case 0x0B: Rule(name: "Subscription Identifier", kind: .variableInteger, places: .publish)
        case 0x11: Rule(name: "Session Expiry Interval", kind: .long, places: .connectAnswer)
        case 0x12: Rule(name: "Assigned Client Identifier", kind: .text, places: .connectAnswer)
        case 0x13: Rule(name: "Server Keep Alive", kind: .word, places: .connectAnswer)
        case 0x15: Rule(name: "Authentication Method", kind: .text, places: .connectAnswer)
        case 0x16: Rule(name: "Authentication Data", kind: .binary, places: .connectAnswer)
        case 0x1A: Rule(name: "Response Information", kind: .text, places: .connectAnswer)
        case 0x1C: Rule(name: "Server Reference", kind: .text, places: [.connectAnswer, .disconnect])
        case 0x1F: Rule(name: "Reason String", kind: .text, places: PropertyPlaces.all.subtracting(.publish))
        case 0x21: Rule(name: "Receive Maximum", kind: .word, places: .connectAnswer)
        case 0x22: Rule(name: "Topic Alias Maximum", kind: .word, places: .connectAnswer)
        case 0x23: Rule(name: "Topic Alias", kind: .word, places: .publish)
        case 0x24: Rule(name: "Maximum QoS", kind: .byte, places: .connectAnswer)
        case 0x25: Rule(name: "Retain Available", kind: .byte, places: .connectAnswer)
        case 0x26: Rule(name: "User Property", kind: .pair, places: .all)
        case 0x27: Rule(name: "Maximum Packet Size", kind: .long, places: .connectAnswer)
        case 0x28: Rule(name: "Wildcard Subscription Available", kind: .byte, places: .connectAnswer)
        case 0x29: Rule(name: "Subscription Identifier Available", kind: .byte, places: .connectAnswer)
        case 0x2A: Rule(name: "Shared Subscription Available", kind: .byte, places: .connectAnswer)
        default: nil
        }
    }
}
