/// An IEEE 11073 number: a decimal mantissa and exponent, or one of five special values.
///
/// IEEE 11073-20601, "SFLOAT-Type" and "FLOAT-Type"; both parts are two's complement, without a bias. Only the whole
/// words are special: the same mantissa with an exponent other than 0 is a number.
public enum IEEE11073Number: Hashable, Sendable {
    /// The number `mantissa` × 10^`exponent`.
    case finite(mantissa: Int32, exponent: Int8)
    case notANumber
    /// NRes: not representable at this resolution.
    case notAtThisResolution
    case positiveInfinity
    case negativeInfinity
    case reserved

    /// Parses a medfloat16: 4 bits of exponent, 12 of mantissa.
    public init(sfloat word: UInt16) {
        self =
            switch word {
            case 0x07FF: .notANumber
            case 0x0800: .notAtThisResolution
            case 0x07FE: .positiveInfinity
            case 0x0802: .negativeInfinity
            case 0x0801: .reserved
            default:
                .finite(
                    mantissa: Int32(Int16(bitPattern: word << 4) >> 4),
                    exponent: Int8(Int16(bitPattern: word) >> 12)
                )
            }
    }

    /// Parses a medfloat32: 8 bits of exponent, 24 of mantissa.
    public init(float word: UInt32) {
        self =
            switch word {
            case 0x007F_FFFF: .notANumber
            case 0x0080_0000: .notAtThisResolution
            case 0x007F_FFFE: .positiveInfinity
            case 0x0080_0002: .negativeInfinity
            case 0x0080_0001: .reserved
            default:
                .finite(
                    mantissa: Int32(bitPattern: word << 8) >> 8,
                    exponent: Int8(Int32(bitPattern: word) >> 24)
                )
            }
    }

    /// The meaning of a special value; `nil` for a number.
    public var reason: String? {
        switch self {
        case .finite: nil
        case .notANumber: "not a number"
        case .notAtThisResolution: "not at this resolution"
        case .positiveInfinity: "+infinity"
        case .negativeInfinity: "-infinity"
        case .reserved: "reserved"
        }
    }

    /// The nearest `Double`; `nil` for a special value or an overflow.
    public var value: Double? {
        guard case .finite(let mantissa, let exponent) = self else { return nil }
        switch exponent {
        case 0...22: return Double(mantissa) * Self.power(Int(exponent))
        case -22...(-1): return Double(mantissa) / Self.power(-Int(exponent))
        default: return Double("\(mantissa)e\(exponent)")
        }
    }

    /// Returns 10^`exponent`, which is exact up to 22.
    private static func power(_ exponent: Int) -> Double {
        var power = 1.0
        for _ in 0..<exponent { power *= 10 }
        return power
    }
}
