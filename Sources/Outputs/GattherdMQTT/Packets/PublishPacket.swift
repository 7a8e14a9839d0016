/// The properties of a published message; MQTT 5 only.
public struct MessageProperties: Hashable, Sendable {
    /// True if the content type is `application/json`.
    public var isJSON: Bool
    /// The expiry in seconds.
    public var expiry: UInt32?
    public var correlation: [UInt8]?
    /// The topic's alias on this connection.
    public var alias: UInt16?
    public var user: [UserProperty]

    /// A name and a value beside the payload.
    public struct UserProperty: Hashable, Sendable {
        public let name: String
        public let value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    public init(
        isJSON: Bool = true,
        expiry: UInt32? = nil,
        correlation: [UInt8]? = nil,
        alias: UInt16? = nil,
        user: [UserProperty] = []
    ) {
        self.isJSON = isJSON
        self.expiry = expiry
        self.correlation = correlation
        self.alias = alias
        self.user = user
    }
}

/// A PUBLISH packet before encoding: MQTT 3.1.1 and 5.0, section 3.3.
public struct PublishPacket: Sendable {
    /// The topic; `nil` if the alias in the properties replaces it.
    public let topic: String?
    public let payload: ArraySlice<UInt8>
    public let isRetained: Bool
    public let properties: MessageProperties

    public init(
        topic: String?,
        payload: ArraySlice<UInt8>,
        isRetained: Bool,
        properties: MessageProperties = MessageProperties()
    ) {
        self.topic = topic
        self.payload = payload
        self.isRetained = isRetained
        self.properties = properties
    }

    /// Throws unless the topic and all properties can be written.
    func check() throws(MQTTRefusal) {
        if let topic {
            let isValid = !topic.isEmpty && topic.utf8.count <= 65_535 && !topic.utf8.contains { Self.isForbidden($0) }
            guard isValid else { throw .invalidTopic }
        }
        if let correlation = properties.correlation, correlation.count > 65_535 { throw .tooLong("correlation data") }
        for pair in properties.user where max(pair.name.utf8.count, pair.value.utf8.count) > 65_535 {
            throw .tooLong("user property")
        }
    }

    /// True for wildcards and the null character: section 4.7 of both specifications.
    private static func isForbidden(_ octet: UInt8) -> Bool {
        octet == UInt8(ascii: "+") || octet == UInt8(ascii: "#") || octet == 0
    }

    /// Appends the packet, which has passed ``check()``.
    ///
    /// - Parameters:
    ///   - octets: Receives the packet.
    ///   - encoded: A buffer for the properties, which their length must precede; its content is replaced.
    ///   - identifier: The packet identifier, with QoS 1; 0 for QoS 0.
    ///   - version: The MQTT version; MQTT 3.1.1 has no properties.
    func append(
        to octets: inout [UInt8],
        by encoded: inout [UInt8],
        identifier: UInt16,
        _ version: MQTTVersion
    ) {
        encoded.removeAll(keepingCapacity: true)
        if version == .v5 { appendProperties(to: &encoded) }
        let topicLength = topic?.utf8.count ?? 0
        let propertiesLength = version == .v5 ? MQTTWriter.lengthOfInteger(encoded.count) + encoded.count : 0
        let length = 2 + topicLength + (identifier == 0 ? 0 : 2) + propertiesLength + payload.count
        octets.append(0x30 | (identifier == 0 ? 0 : 2) | (isRetained ? 1 : 0))
        MQTTWriter.append(integer: length, to: &octets)
        MQTTWriter.append(UInt16(truncatingIfNeeded: topicLength), to: &octets)
        if let topic { octets.append(contentsOf: topic.utf8) }
        if identifier != 0 { MQTTWriter.append(identifier, to: &octets) }
        if version == .v5 {
            MQTTWriter.append(integer: encoded.count, to: &octets)
            octets.append(contentsOf: encoded)
        }
        octets.append(contentsOf: payload)
    }

    private func appendProperties(to octets: inout [UInt8]) {
        if properties.isJSON {
            octets.append(0x03)
            MQTTWriter.append("application/json", to: &octets)
        }
        if let expiry = properties.expiry {
            octets.append(0x02)
            MQTTWriter.append(long: expiry, to: &octets)
        }
        if let alias = properties.alias {
            octets.append(0x23)
            MQTTWriter.append(alias, to: &octets)
        }
        for pair in properties.user {
            octets.append(0x26)
            MQTTWriter.append(pair.name, to: &octets)
            MQTTWriter.append(pair.value, to: &octets)
        }
        if let correlation = properties.correlation {
            octets.append(0x09)
            MQTTWriter.append(binary: correlation, to: &octets)
        }
    }
}
