public import GattherdGATT

/// IEEE 11073's SFLOAT, GATT's `medfloat16`: 12 bits of mantissa, 4 of exponent.
public struct MedFloat16: Hashable, Sendable {
    public let number: IEEE11073Number

    public init(_ number: IEEE11073Number) {
        self.number = number
    }
}

/// IEEE 11073's FLOAT, GATT's `medfloat32`: 24 bits of mantissa, 8 of exponent.
public struct MedFloat32: Hashable, Sendable {
    public let number: IEEE11073Number

    public init(_ number: IEEE11073Number) {
        self.number = number
    }
}

extension MedFloat16: Readable, Writable {
    /// The nearest `Double`; `nil` for special values that are not numbers.
    public var value: Double? { number.value }

    public init(octets: [UInt8]) throws(PayloadError) {
        self.init(IEEE11073Number(sfloat: try UInt16(octets: octets)))
    }

    public func octets() throws(PayloadError) -> [UInt8] {
        let (mantissa, exponent) = try number.parts(mantissaBits: 12, exponentBits: 4)
        return UInt16(truncatingIfNeeded: Int32(exponent) << 12 | mantissa & 0xFFF).octets()
    }
}

extension MedFloat32: Readable, Writable {
    /// The nearest `Double`; `nil` for special values that are not numbers.
    public var value: Double? { number.value }

    public init(octets: [UInt8]) throws(PayloadError) {
        self.init(IEEE11073Number(float: try UInt32(octets: octets)))
    }

    public func octets() throws(PayloadError) -> [UInt8] {
        let (mantissa, exponent) = try number.parts(mantissaBits: 24, exponentBits: 8)
        return UInt32(bitPattern: Int32(exponent) << 24 | mantissa & 0xFF_FFFF).octets()
    }
}

extension IEEE11073Number {
    /// Mantissa and exponent; the special words are mantissas at the ends of the range, with the exponent 0.
    fileprivate func parts(
        mantissaBits: Int32,
        exponentBits: Int32
    ) throws(PayloadError) -> (mantissa: Int32, exponent: Int8) {
        let limit: Int32 = 1 << (mantissaBits - 1)
        let exponents = -(1 << (exponentBits - 1))...(1 << (exponentBits - 1)) - 1 as ClosedRange<Int32>
        switch self {
        case .notANumber: return (limit - 1, 0)
        case .notAtThisResolution: return (-limit, 0)
        case .positiveInfinity: return (limit - 2, 0)
        case .negativeInfinity: return (2 - limit, 0)
        case .reserved: return (1 - limit, 0)
        case .finite(let mantissa, let exponent):
            let isSpecial = exponent == 0 && !(3 - limit...limit - 3).contains(mantissa)
            guard (-limit..<limit).contains(mantissa), exponents.contains(Int32(exponent)), !isSpecial else {
                throw .invalid(reason: "\(mantissa)e\(exponent) does not fit into \(mantissaBits + exponentBits) bits")
            }
            return (mantissa, exponent)
        }
    }
}
