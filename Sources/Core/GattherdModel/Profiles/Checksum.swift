public import GattherdGATT

/// The checksum of a payload, or of bytes that are written.
public struct Checksum: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case sum8
        case sum16
        case xor8
        case crc8
        case crc16
        case crc32

        /// The width in bytes.
        public var width: Int {
            switch self {
            case .sum8, .xor8, .crc8: 1
            case .sum16, .crc16: 2
            case .crc32: 4
            }
        }

        public var isCRC: Bool { self == .crc8 || self == .crc16 || self == .crc32 }
    }

    public let kind: Kind
    /// The polynomial of a CRC without its highest term, highest bit first.
    public var polynomial: UInt32
    public var start: UInt32
    /// The bits that are inverted at the end.
    public var inversion: UInt32
    /// True if the bits of each byte and of the result are processed from the lowest.
    public var isReflected: Bool
    /// The bytes that it is computed from.
    public var bytes: ByteSlice
    /// The bytes of the checksum itself.
    public var place: ByteSlice
    public var isBigEndian: Bool

    public init(
        _ kind: Kind,
        polynomial: UInt32 = 0,
        start: UInt32 = 0,
        inversion: UInt32 = 0,
        isReflected: Bool = false
    ) {
        (self.kind, self.polynomial, self.start) = (kind, polynomial, start)
        (self.inversion, self.isReflected, isBigEndian) = (inversion, isReflected, false)
        bytes = ByteSlice(first: 0, end: -kind.width)
        place = ByteSlice(first: -kind.width, end: nil)
    }

    /// Checks a payload.
    ///
    /// - Throws: ``PayloadError`` if the payload is too short or has another checksum.
    public func verify(_ payload: Span<UInt8>) throws(PayloadError) {
        guard let place = place.range(in: payload.count), let bytes = bytes.range(in: payload.count) else {
            throw .invalid(reason: "it is too short for its checksum: \(payload.count) bytes")
        }
        var stated: UInt32 = 0
        for index in place {
            let octet = payload[isBigEndian ? index : place.upperBound - 1 - (index - place.lowerBound)]
            stated = stated << 8 | UInt32(octet)
        }
        let actual = value(of: payload, bytes)
        guard stated == actual else {
            throw .invalid(reason: "its checksum is \(text(stated)) instead of \(text(actual))")
        }
    }

    /// Returns the bytes with the checksum at its place; `nil` if they are too few for it.
    ///
    /// Nor can it cover itself, or nothing.
    public func inserted(into octets: [UInt8]) -> [UInt8]? {
        let count = octets.count + kind.width
        guard let place = place.range(in: count), let bytes = bytes.range(in: count), place.count == kind.width,
            !bytes.isEmpty, !bytes.overlaps(place)
        else { return nil }
        var result = octets
        result.insert(contentsOf: repeatElement(0, count: kind.width), at: place.lowerBound)
        let sum = value(of: result.span, bytes)
        for (offset, index) in place.enumerated() {
            let shift = 8 * (isBigEndian ? kind.width - 1 - offset : offset)
            result[index] = UInt8(truncatingIfNeeded: sum >> UInt32(shift))
        }
        return result
    }

    private var mask: UInt32 { .max >> UInt32(32 - 8 * kind.width) }

    private func value(of payload: Span<UInt8>, _ range: Range<Int>) -> UInt32 {
        var value = initialRegister
        for index in range {
            switch kind {
            case .sum8, .sum16: value &+= UInt32(payload[index])
            case .xor8: value ^= UInt32(payload[index])
            case .crc8, .crc16, .crc32: value = shifted(value, payload[index])
            }
        }
        return (value ^ inversion) & mask
    }

    /// The register before the first byte; catalogues state it unreflected.
    private var initialRegister: UInt32 {
        kind.isCRC && isReflected ? reflected(start) : start
    }

    /// Returns the register of a CRC after another byte.
    private func shifted(_ register: UInt32, _ octet: UInt8) -> UInt32 {
        let bits = UInt32(8 * kind.width)
        let reflectedPolynomial = reflected(polynomial)
        var value = register ^ (isReflected ? UInt32(octet) : UInt32(octet) << (bits - 8))
        for _ in 0..<8 {
            if isReflected {
                value = value & 1 == 1 ? value >> 1 ^ reflectedPolynomial : value >> 1
            } else {
                value = value >> (bits - 1) & 1 == 1 ? value << 1 ^ polynomial : value << 1
            }
        }
        return value & mask
    }

    /// Returns a number of the checksum's width with its bits in reverse order.
    private func reflected(_ number: UInt32) -> UInt32 {
        number.bitReversed >> UInt32(32 - 8 * kind.width)
    }

    private func text(_ number: UInt32) -> String {
        let digits = String(number, radix: 16, uppercase: true)
        return "0x" + String(repeating: "0", count: max(0, 2 * kind.width - digits.count)) + digits
    }
}

extension UInt32 {
    fileprivate var bitReversed: UInt32 {
        (0..<32).reduce(0) { $0 | (self >> UInt32($1) & 1) << UInt32(31 - $1) }
    }
}
