/// A number as medical devices send it: a decimal mantissa and exponent, or one of five special words.
///
/// IEEE 11073-20601, "SFLOAT-Type" and "FLOAT-Type"; both parts are two's complement, without a bias.
public enum IEEE11073Number: Hashable, Sendable {
    /// `mantissa` × 10^`exponent`.
    case finite(mantissa: Int32, exponent: Int8)
    case notANumber
    /// The device cannot say it in this resolution.
    case notAtThisResolution
    case positiveInfinity
    case negativeInfinity
    case reserved

    /// Reads a medfloat16: 4 bits of exponent, 12 of mantissa.
    public init(sfloat word: UInt16) {
        self.init(
            mantissa: Int32(Int16(bitPattern: word << 4) >> 4),
            exponent: Int8(Int16(bitPattern: word) >> 12),
            limit: 0x800
        )
    }

    /// Reads a medfloat32: 8 bits of exponent, 24 of mantissa.
    public init(float word: UInt32) {
        self.init(
            mantissa: Int32(bitPattern: word << 8) >> 8,
            exponent: Int8(Int32(bitPattern: word) >> 24),
            limit: 0x80_0000
        )
    }

    /// A special mantissa is special with any exponent: some devices send one.
    private init(mantissa: Int32, exponent: Int8, limit: Int32) {
        self =
            switch mantissa {
            case limit - 1: .notANumber
            case -limit: .notAtThisResolution
            case limit - 2: .positiveInfinity
            case 2 - limit: .negativeInfinity
            case 1 - limit: .reserved
            default: .finite(mantissa: mantissa, exponent: exponent)
            }
    }

    /// The nearest `Double`; `nil` for what is no number that can be kept.
    public var value: Double? {
        guard case .finite(let mantissa, let exponent) = self else { return nil }
        switch exponent {
        case 0...22: return Double(mantissa) * Self.power(Int(exponent))
        case -22...(-1): return Double(mantissa) / Self.power(-Int(exponent))
        default: return Double("\(mantissa)e\(exponent)")
        }
    }

    /// 10^`exponent`, which is exact up to 22.
    private static func power(_ exponent: Int) -> Double {
        var power = 1.0
        for _ in 0..<exponent { power *= 10 }
        return power
    }
}
