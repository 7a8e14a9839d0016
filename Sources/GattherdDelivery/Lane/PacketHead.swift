/// What the octets that came from the broker begin with: MQTT 3.1.1 and 5.0, section 2.1.
enum PacketHead: Equatable {
    /// A PUBACK, `length` octets of it; `reason` is 0 with MQTT 3.1.1.
    case acknowledgement(identifier: UInt16, reason: UInt8, length: Int)
    /// A PUBLISH, here as a whole or not.
    case message
    /// Any other packet, here as a whole.
    case other
    /// A part of a packet, of which nothing more can be told before `needed` octets are here.
    case incomplete(needed: Int)
    /// A length of more than four octets, or a message of a QoS that no subscription of ours has.
    case malformed

    init(_ octets: Span<UInt8>) {
        var length = 0
        for position in 1..<5 {
            guard position < octets.count else {
                self = .incomplete(needed: position + 1)
                return
            }
            length |= Int(octets[position] & 0x7F) << (7 * (position - 1))
            if octets[position] < 0x80 {
                self = Self.packet(octets, body: position + 1, length: length)
                return
            }
        }
        self = .malformed
    }

    private static func packet(_ octets: Span<UInt8>, body: Int, length: Int) -> PacketHead {
        if octets[0] >> 4 == 3 { return octets[0] & 0x04 == 0 ? .message : .malformed }
        let end = body + length
        guard octets.count >= end else { return .incomplete(needed: end) }
        guard octets[0] == 0x40, length >= 2 else { return .other }
        let identifier = UInt16(octets[body]) << 8 | UInt16(octets[body + 1])
        return .acknowledgement(identifier: identifier, reason: length > 2 ? octets[body + 2] : 0, length: end)
    }
}
