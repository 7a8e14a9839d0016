/// A PUBLISH as it goes onto the wire: MQTT 3.1.1 and 5.0, section 3.3.
struct PublishPacket {
    /// Without one the alias in the properties stands for it.
    let topic: String?
    let payload: ArraySlice<UInt8>
    let isRetained: Bool
    var properties = MessageProperties()

    /// Appends the packet to `octets`.
    ///
    /// - Parameters:
    ///   - octets: Takes the packet.
    ///   - encoded: A buffer for the properties, which must have their length before them; what is in it is replaced.
    ///   - identifier: What PUBACK will have: the packet has QoS 1. With 0 it has QoS 0.
    ///   - version: Before MQTT 5 there are no properties.
    func append(
        to octets: inout [UInt8],
        by encoded: inout [UInt8],
        identifier: UInt16,
        _ version: DeliverySettings.Version
    ) {
        encoded.removeAll(keepingCapacity: true)
        if version == .v5 { appendProperties(to: &encoded) }
        let topicLength = topic?.utf8.count ?? 0
        let propertiesLength = version == .v5 ? Self.lengthOfInteger(encoded.count) + encoded.count : 0
        let length = 2 + topicLength + (identifier == 0 ? 0 : 2) + propertiesLength + payload.count
        octets.append(0x30 | (identifier == 0 ? 0 : 2) | (isRetained ? 1 : 0))
        Self.append(integer: length, to: &octets)
        Self.append(UInt16(truncatingIfNeeded: topicLength), to: &octets)
        if let topic { octets.append(contentsOf: topic.utf8) }
        if identifier != 0 { Self.append(identifier, to: &octets) }
        if version == .v5 {
            Self.append(integer: encoded.count, to: &octets)
            octets.append(contentsOf: encoded)
        }
        octets.append(contentsOf: payload)
    }

    private func appendProperties(to octets: inout [UInt8]) {
        if properties.isJSON {
            octets.append(0x03)
            Self.append("application/json", to: &octets)
        }
        if let expiry = properties.expiry {
            octets.append(0x02)
            Self.append(UInt16(truncatingIfNeeded: expiry >> 16), to: &octets)
            Self.append(UInt16(truncatingIfNeeded: expiry), to: &octets)
        }
        if let alias = properties.alias {
            octets.append(0x23)
            Self.append(alias, to: &octets)
        }
        for pair in properties.user {
            octets.append(0x26)
            Self.append(pair.name, to: &octets)
            Self.append(pair.value, to: &octets)
        }
        if let correlation = properties.correlation {
            octets.append(0x09)
            Self.append(UInt16(clamping: correlation.count), to: &octets)
            octets.append(contentsOf: correlation.prefix(Int(UInt16.max)))
        }
    }

    // MARK: - MQTT's types (section 1.5)

    private static func append(_ word: UInt16, to octets: inout [UInt8]) {
        octets.append(UInt8(truncatingIfNeeded: word >> 8))
        octets.append(UInt8(truncatingIfNeeded: word))
    }

    /// Our names and values are far shorter than the 65535 octets that a string may have.
    private static func append(_ text: String, to octets: inout [UInt8]) {
        append(UInt16(truncatingIfNeeded: text.utf8.count), to: &octets)
        octets.append(contentsOf: text.utf8)
    }

    private static func append(integer: Int, to octets: inout [UInt8]) {
        var rest = integer
        repeat {
            octets.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
    }

    private static func lengthOfInteger(_ integer: Int) -> Int {
        switch integer {
        case ..<0x80: 1
        case ..<0x4000: 2
        case ..<0x20_0000: 3
        default: 4
        }
    }
}
