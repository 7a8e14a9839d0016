/// What the octets that came from the broker begin with: MQTT 3.1.1 and 5.0, section 2.1.
enum PacketHead: Equatable {
    /// A whole PUBACK, `length` octets of it; `reason` is 0 with MQTT 3.1.1.
    case acknowledgement(identifier: UInt16, reason: UInt8, length: Int)
    /// A PUBLISH, `length` octets of it, here or still to come.
    case message(length: Int)
    /// Any other packet; `length` is 0 when it is none.
    case other(length: Int)
    /// Too few octets to tell, or a part of a PUBACK.
    case incomplete

    init(_ octets: Span<UInt8>) {
        guard octets.count >= 2 else {
            self = .incomplete
            return
        }
        var (length, position) = (0, 1)
        while position < octets.count, position < 5 {
            let octet = octets[position]
            length |= Int(octet & 0x7F) << (7 * (position - 1))
            position += 1
            if octet < 0x80 {
                self = Self.packet(octets, body: position, length: length)
                return
            }
        }
        self = position == 5 ? .other(length: 0) : .incomplete
    }

    private static func packet(_ octets: Span<UInt8>, body: Int, length: Int) -> PacketHead {
        let end = body + length
        guard octets[0] == 0x40, length >= 2 else {
            return octets[0] >> 4 == 3 ? .message(length: end) : .other(length: end)
        }
        guard octets.count >= end else { return .incomplete }
        let identifier = UInt16(octets[body]) << 8 | UInt16(octets[body + 1])
        return .acknowledgement(identifier: identifier, reason: length > 2 ? octets[body + 2] : 0, length: end)
    }
}
