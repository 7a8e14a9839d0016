/// Decodes the broker's stream into packets, wherever it is split.
///
/// The memory is bounded. Of a message, at most ``BrokerMessage/maximum`` + 1 octets of payload are kept, and a topic
/// and properties up to ``headLimit``; the rest is counted and skipped. Any other packet longer than ``packetLimit`` is
/// a violation.
struct PacketDecoder {
    /// The maximum length of a packet other than a message, in octets.
    static let packetLimit = 262_144
    /// The maximum length of a message's properties that are read.
    static let headLimit = 196_608
    /// The maximum capacity that is kept after an incomplete packet, in octets.
    private static let keptCapacity = 16_384

    private let version: MQTTVersion
    /// An incomplete packet, or the incomplete head of a message.
    private var pending: [UInt8] = []
    /// The number of octets that `pending` needs before the next step.
    private var demand = 0
    private var message: IncomingMessage?

    /// A message with an incomplete payload.
    private struct IncomingMessage {
        var content: BrokerMessage
        let identifier: UInt16
        var left: Int
    }

    private enum Step {
        /// More octets are needed: `demand` in total.
        case incomplete(demand: Int)
        case packet(InboundPacket, size: Int)
        /// The head is complete, and the payload follows.
        case message(IncomingMessage, size: Int)
    }

    init(_ version: MQTTVersion) {
        self.version = version
    }

    /// The number of octets that memory is reserved for.
    var memory: Int { pending.capacity + (message?.content.payload.capacity ?? 0) }

    /// Decodes the next octets.
    ///
    /// - Parameters:
    ///   - octets: The octets after those of the last call.
    ///   - take: Receives each complete packet, in order; those before a violation are valid.
    /// - Throws: ``MQTTViolation`` of a packet, or of `take`; the decoder cannot be used afterwards.
    mutating func decode(
        _ octets: ArraySlice<UInt8>,
        _ take: (InboundPacket) throws(MQTTViolation) -> Void
    ) throws(MQTTViolation) {
        var rest = octets
        while !rest.isEmpty {
            if message != nil {
                try continueMessage(&rest, take)
            } else if pending.isEmpty {
                try decodeInPlace(&rest, take)
            } else {
                try completePending(&rest, take)
            }
        }
    }

    /// Decodes packets without copying, as no earlier octets are pending.
    private mutating func decodeInPlace(
        _ rest: inout ArraySlice<UInt8>,
        _ take: (InboundPacket) throws(MQTTViolation) -> Void
    ) throws(MQTTViolation) {
        let step = try Self.step(rest, version)
        if case .incomplete(let demand) = step {
            pending.append(contentsOf: rest)
            self.demand = demand
            rest = []
        } else {
            rest = rest.dropFirst(try finish(step, take))
        }
    }

    private mutating func completePending(
        _ rest: inout ArraySlice<UInt8>,
        _ take: (InboundPacket) throws(MQTTViolation) -> Void
    ) throws(MQTTViolation) {
        let missing = rest.prefix(demand - pending.count)
        pending.append(contentsOf: missing)
        rest = rest.dropFirst(missing.count)
        guard pending.count >= demand else { return }
        let step = try Self.step(pending[...], version)
        if case .incomplete(let demand) = step {
            self.demand = demand
        } else {
            _ = try finish(step, take)
            pending.removeAll(keepingCapacity: pending.capacity <= Self.keptCapacity)
        }
    }

    /// Emits a packet or continues a message's payload; returns the number of octets used.
    private mutating func finish(
        _ step: Step,
        _ take: (InboundPacket) throws(MQTTViolation) -> Void
    ) throws(MQTTViolation) -> Int {
        switch step {
        case .incomplete: return 0
        case .packet(let packet, let size):
            try take(packet)
            return size
        case .message(let message, let size):
            if message.left == 0 {
                try take(.message(message.content, identifier: message.identifier))
            } else {
                self.message = message
            }
            return size
        }
    }

    private mutating func continueMessage(
        _ rest: inout ArraySlice<UInt8>,
        _ take: (InboundPacket) throws(MQTTViolation) -> Void
    ) throws(MQTTViolation) {
        guard var message else { return }
        self.message = nil
        let part = rest.prefix(message.left)
        let room = message.content.topic.isEmpty ? 0 : BrokerMessage.maximum + 1 - message.content.payload.count
        message.content.payload.append(contentsOf: part.prefix(max(0, room)))
        message.left -= part.count
        rest = rest.dropFirst(part.count)
        guard message.left == 0 else { return self.message = message }
        try take(.message(message.content, identifier: message.identifier))
    }

    // MARK: - One packet

    /// Reads the packet at the beginning of `octets`, as far as it is available.
    private static func step(_ octets: ArraySlice<UInt8>, _ version: MQTTVersion) throws(MQTTViolation) -> Step {
        guard let first = octets.first else { return .incomplete(demand: 2) }
        let name = try InboundPacket.name(first, version)
        guard let (length, size) = try PacketReader.variableInteger(octets.dropFirst(), of: name) else {
            return .incomplete(demand: octets.count + 1)
        }
        let start = 1 + size
        if first >> 4 == 3 { return try message(octets, first, start: start, length: length, version) }
        try check(length, of: first, name)
        guard octets.count >= start + length else { return .incomplete(demand: start + length) }
        let reader = PacketReader(octets.dropFirst(start).prefix(length), of: name)
        return .packet(try InboundPacket(first, reader, version), size: start + length)
    }

    /// Checks a packet's length: MQTT 3.1.1 has fixed lengths, and no packet of MQTT 5 needs to be long.
    private static func check(_ length: Int, of first: UInt8, _ name: StaticString) throws(MQTTViolation) {
        guard length <= packetLimit else {
            throw MQTTViolation(.packetTooLarge, "\(name) of \(length) octets")
        }
        if first >> 4 == 13, length > 0 { throw .malformed("PINGRESP with a content") }
    }

    /// Reads topic, packet identifier and properties of a PUBLISH: MQTT 5, section 3.3.
    private static func message(
        _ octets: ArraySlice<UInt8>,
        _ first: UInt8,
        start: Int,
        length: Int,
        _ version: MQTTVersion
    ) throws(MQTTViolation) -> Step {
        var head = MessageHead(version, hasIdentifier: first & 0x06 != 0)
        guard let size = try head.size(octets.dropFirst(start), length) else {
            return .incomplete(demand: start + head.demand)
        }
        var reader = PacketReader(octets.dropFirst(start).prefix(size), of: "PUBLISH")
        let topic = try head.topic(&reader)
        let identifier = head.hasIdentifier ? try reader.identifier() : 0
        var content = BrokerMessage(topic: topic ?? "", payload: [], length: 0, isRetained: first & 1 != 0)
        if version == .v5 { try head.readProperties(&reader, into: &content, isTopicEmpty: topic == "") }
        content.length = length - size - head.skipped
        let message = IncomingMessage(content: content, identifier: identifier, left: length - size)
        return .message(message, size: start + size)
    }
}

/// The available octets before the payload of a PUBLISH.
private struct MessageHead {
    let version: MQTTVersion
    let hasIdentifier: Bool
    /// The number of octets needed for the next step.
    private(set) var demand = 2
    /// The properties' length if they are too long to be read.
    private(set) var skipped = 0

    init(_ version: MQTTVersion, hasIdentifier: Bool) {
        self.version = version
        self.hasIdentifier = hasIdentifier
    }

    /// The size of everything before the payload; `nil` until ``demand`` octets are available.
    ///
    /// - Parameters:
    ///   - body: The available part of the packet's body, perhaps followed by further packets.
    ///   - length: The body's length.
    /// - Returns: The size in octets.
    /// - Throws: ``MQTTViolation`` if the head is longer than the body.
    mutating func size(_ body: ArraySlice<UInt8>, _ length: Int) throws(MQTTViolation) -> Int? {
        let body = body.prefix(length)
        guard try has(2, body, length) else { return nil }
        let topicLength = Int(body[body.startIndex]) << 8 | Int(body[body.startIndex + 1])
        let fixed = 2 + topicLength + (hasIdentifier ? 2 : 0)
        guard version == .v5 else { return try has(fixed, body, length) ? fixed : nil }
        guard try has(fixed + 1, body, length) else { return nil }
        guard let (count, size) = try PacketReader.variableInteger(body.dropFirst(fixed), of: "PUBLISH") else {
            _ = try has(body.count + 1, body, length)
            return nil
        }
        guard fixed + size + count <= length else { throw Self.tooShort }
        guard count <= PacketDecoder.headLimit else {
            skipped = count
            return fixed + size
        }
        return try has(fixed + size + count, body, length) ? fixed + size + count : nil
    }

    /// Reads the topic, which must not be empty: this client accepts no topic aliases.
    ///
    /// - Returns: The topic; `nil` if it is not UTF-8, or has a wildcard or a NUL. Not all brokers refuse such a
    ///   message, so one publisher could end every session.
    /// - Throws: ``MQTTViolation`` if there is no topic.
    func topic(_ reader: inout PacketReader) throws(MQTTViolation) -> String? {
        let bytes = try reader.binary()
        guard let topic = String(validating: bytes, as: UTF8.self) else { return nil }
        guard !bytes.contains(where: { "+#\0".utf8.contains($0) }) else { return nil }
        if topic.isEmpty, version == .v311 { throw .protocolError("PUBLISH without a topic") }
        return topic
    }

    /// Reads the properties into a message; `isTopicEmpty` is true without a topic, which only an alias may replace.
    func readProperties(
        _ reader: inout PacketReader,
        into message: inout BrokerMessage,
        isTopicEmpty: Bool
    ) throws(MQTTViolation) {
        guard skipped == 0 else {
            _ = try reader.variableInteger()
            message.topic = ""
            return
        }
        let properties = try InboundProperties(&reader, in: .publish)
        guard properties.topicAlias == nil else {
            throw MQTTViolation(.topicAliasInvalid, "PUBLISH with a topic alias, which we did not allow")
        }
        guard !isTopicEmpty else { throw .protocolError("PUBLISH without a topic") }
        message.responseTopic = properties.responseTopic
        message.correlation = properties.correlation
    }

    private mutating func has(
        _ count: Int,
        _ body: ArraySlice<UInt8>,
        _ length: Int
    ) throws(MQTTViolation) -> Bool {
        guard count <= length else { throw Self.tooShort }
        demand = count
        return count <= body.count
    }

    private static let tooShort = MQTTViolation.malformed("PUBLISH ends too early")
}
