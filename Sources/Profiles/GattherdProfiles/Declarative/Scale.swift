import GattherdGATT
import GattherdModel
import Glibc

/// The conversion raw × scale + offset, as one fraction, so that the value is rounded once.
struct Scale: Hashable, Sendable {
    /// The parts of (raw × factor + summand) ÷ divisor.
    private let factor: Int64
    private let summand: Int64
    private let divisor: Int64
    /// The decimals that values are rounded to; `nil` if all values are written in full.
    private let decimals: Int?

    /// The maximum number of decimals of values that are written in full: 1/64 has 6.
    private static let maximumExactDecimals = 6
    /// The decimals beyond those that distinguish neighbouring raw numbers.
    private static let spareDecimals = 2.0

    static let identity = Scale(factor: 1, summand: 0, divisor: 1)

    private init(factor: Int64, summand: Int64, divisor: Int64) {
        self.factor = factor
        self.summand = summand
        self.divisor = divisor
        let enough = Self.decimals(resolving: Double(factor) / Double(divisor))
        let exact = Self.exactDecimals(factor, summand, divisor) ?? .max
        decimals = exact <= max(enough, Self.maximumExactDecimals) ? nil : enough
    }

    /// Creates a scale; `nil` if the common fraction exceeds 53 bits, or the scale is 0.
    init?(scale: Rational, offset: Rational) {
        let (divisor, overflow) = scale.denominator.multipliedReportingOverflow(by: offset.denominator)
        let (factor, overflow2) = scale.numerator.multipliedReportingOverflow(by: offset.denominator)
        let (summand, overflow3) = offset.numerator.multipliedReportingOverflow(by: scale.denominator)
        guard !overflow, !overflow2, !overflow3, factor != 0 else { return nil }
        guard [divisor, factor, summand].allSatisfy({ $0.magnitude <= 1 << 53 }) else { return nil }
        self.init(factor: factor, summand: summand, divisor: divisor)
    }

    /// True if integers stay integers.
    var isWhole: Bool { divisor == 1 }
    var isIdentity: Bool { self == .identity }

    /// Converts an integer.
    func apply(to raw: Int64) -> SampleValue {
        guard let above = numerator(raw, summand) else { return .real(apply(to: Double(raw))) }
        return isWhole ? .integer(above) : .real(Self.ratio(above, divisor, decimals: decimals))
    }

    /// Converts a floating-point number.
    ///
    /// - Parameters:
    ///   - raw: The number.
    ///   - digits: The number's significant digits.
    /// - Returns: The value, rounded to as many digits.
    func apply(to raw: Double, digits: Int = Double.reliableDigits) -> Double {
        guard !isIdentity else { return raw }
        return ((raw * Double(factor) + Double(summand)) / Double(divisor)).rounded(toDigits: digits)
    }

    /// Converts a decimal number; rounds once unless the parts overflow.
    func apply(toMantissa mantissa: Int32, exponent: Int8) -> Double? {
        if let power = Rational.power(abs(Int(exponent))) {
            let isFraction = exponent < 0
            let (raw, overflow) = Int64(mantissa).multipliedReportingOverflow(by: isFraction ? 1 : power)
            let (summand, overflow2) = summand.multipliedReportingOverflow(by: isFraction ? power : 1)
            let (divisor, overflow3) = divisor.multipliedReportingOverflow(by: isFraction ? power : 1)
            if !overflow, !overflow2, !overflow3, let above = numerator(raw, summand) {
                return Self.ratio(above, divisor, decimals: decimals.map { $0 - Int(exponent) })
            }
        }
        return IEEE11073Number.finite(mantissa: mantissa, exponent: exponent).value.map { apply(to: $0) }
    }

    /// Converts a quotient of integers.
    ///
    /// Returns the sample value, also as a `Double`.
    func apply(toRatioOf over: Int64, _ under: Int64) -> (SampleValue, Double) {
        if under == 1, isWhole, let above = numerator(over, summand) { return (.integer(above), Double(above)) }
        let (summand, overflow) = summand.multipliedReportingOverflow(by: under)
        let (divisor, overflow2) = divisor.multipliedReportingOverflow(by: under)
        let value: Double
        if !overflow, !overflow2, let above = numerator(over, summand) {
            value = Self.ratio(above, divisor, decimals: decimals(ofRatio: over, under))
        } else {
            value = apply(to: Double(over) / Double(under))
        }
        return (.real(value), value)
    }

    /// Returns the raw number for `value`.
    func raw(of value: Double) -> Double {
        (value * Double(divisor) - Double(summand)) / Double(factor)
    }

    private func numerator(_ raw: Int64, _ summand: Int64) -> Int64? {
        let (product, overflow) = raw.multipliedReportingOverflow(by: factor)
        let (sum, overflow2) = product.addingReportingOverflow(summand)
        return overflow || overflow2 ? nil : sum
    }

    // MARK: - Decimals

    /// Returns the decimals of a rate, enough to show a difference of one clock tick.
    private func decimals(ofRatio over: Int64, _ under: Int64) -> Int? {
        guard under != 1 else { return decimals }
        let ticks = Double(under) * Double(under)
        return over == 0 ? nil : Self.decimals(resolving: Double(factor) / Double(divisor) * Double(over) / ticks)
    }

    /// Returns the number of decimals of all values; `nil` if they do not terminate, as with 1/3.
    private static func exactDecimals(_ factor: Int64, _ summand: Int64, _ divisor: Int64) -> Int? {
        let common = Rational.greatestCommonDivisor(factor.magnitude, summand.magnitude)
        var rest = divisor.magnitude / max(1, Rational.greatestCommonDivisor(common, divisor.magnitude))
        var counts = (two: 0, five: 0)
        while rest > 1, rest.isMultiple(of: 2) { (rest, counts.two) = (rest / 2, counts.two + 1) }
        while rest > 1, rest.isMultiple(of: 5) { (rest, counts.five) = (rest / 5, counts.five + 1) }
        return rest == 1 ? max(counts.two, counts.five) : nil
    }

    private static func decimals(resolving step: Double) -> Int {
        Int(max(0, min(18, (spareDecimals - log10(abs(step))).rounded(.up))))
    }

    /// Returns the quotient, rounded once to the nearest `Double` or the nearest decimal.
    private static func ratio(_ above: Int64, _ below: Int64, decimals: Int?) -> Double {
        if let decimals, let value = decimal(above, below, decimals) { return value }
        let isExact = max(above.magnitude, below.magnitude) <= 1 << 53
        let value = Double(above) / Double(below)
        return isExact ? value : value.rounded(toDigits: Double.reliableDigits)
    }

    /// Returns the quotient, rounded to `decimals`; `nil` if a `Double` cannot hold them.
    private static func decimal(_ above: Int64, _ below: Int64, _ decimals: Int) -> Double? {
        guard let power = Rational.power(max(0, decimals)), below > 0 else { return nil }
        let product = above.magnitude.multipliedFullWidth(by: power.magnitude)
        guard product.high < below.magnitude else { return nil }
        let (quotient, remainder) = below.magnitude.dividingFullWidth(product)
        guard quotient < 1 << 53 else { return nil }
        let rounded = quotient + (remainder >= below.magnitude - remainder ? 1 : 0)
        let value = Double(rounded) / Double(power)
        return above < 0 ? -value : value
    }
}
