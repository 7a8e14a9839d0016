import GattherdGATT
import GattherdModel

/// What turns a raw number into a value: raw × scale + offset, as one fraction, so that it is rounded once.
struct Scale: Hashable, Sendable {
    /// The value is (raw × factor + summand) ÷ divisor.
    private let factor: Int64
    private let summand: Int64
    private let divisor: Int64

    static let identity = Scale(factor: 1, summand: 0, divisor: 1)

    private init(factor: Int64, summand: Int64, divisor: Int64) {
        self.factor = factor
        self.summand = summand
        self.divisor = divisor
    }

    /// `nil` when both have no common fraction in 53 bits, or the scale is 0.
    init?(scale: Rational, offset: Rational) {
        let (divisor, overflow) = scale.denominator.multipliedReportingOverflow(by: offset.denominator)
        let (factor, overflow2) = scale.numerator.multipliedReportingOverflow(by: offset.denominator)
        let (summand, overflow3) = offset.numerator.multipliedReportingOverflow(by: scale.denominator)
        guard !overflow, !overflow2, !overflow3, factor != 0 else { return nil }
        guard [divisor, factor, summand].allSatisfy({ $0.magnitude <= 1 << 53 }) else { return nil }
        self.init(factor: factor, summand: summand, divisor: divisor)
    }

    /// True when whole numbers stay whole.
    var isWhole: Bool { divisor == 1 }
    var isIdentity: Bool { self == .identity }

    /// The value of a whole number.
    func apply(to raw: Int64) -> SampleValue {
        guard let above = numerator(raw, summand) else { return .real(apply(to: Double(raw))) }
        return isWhole ? .integer(above) : .real(ratio(above, divisor))
    }

    /// The value of a number that is not whole.
    func apply(to raw: Double) -> Double {
        (raw * Double(factor) + Double(summand)) / Double(divisor)
    }

    /// The value of a decimal number, rounded once where its parts allow it.
    func apply(toMantissa mantissa: Int32, exponent: Int8) -> Double? {
        if let power = Rational.power(abs(Int(exponent))) {
            let isFraction = exponent < 0
            let (raw, overflow) = Int64(mantissa).multipliedReportingOverflow(by: isFraction ? 1 : power)
            let (summand, overflow2) = summand.multipliedReportingOverflow(by: isFraction ? power : 1)
            let (divisor, overflow3) = divisor.multipliedReportingOverflow(by: isFraction ? power : 1)
            if !overflow, !overflow2, !overflow3, let above = numerator(raw, summand) { return ratio(above, divisor) }
        }
        return IEEE11073Number.finite(mantissa: mantissa, exponent: exponent).value.map { apply(to: $0) }
    }

    /// The value of a fraction of whole numbers, whole when it must be; and the same as a number.
    func apply(toRatioOf over: Int64, _ under: Int64) -> (SampleValue, Double) {
        if under == 1, isWhole, let above = numerator(over, summand) { return (.integer(above), Double(above)) }
        let (summand, overflow) = summand.multipliedReportingOverflow(by: under)
        let (divisor, overflow2) = divisor.multipliedReportingOverflow(by: under)
        if !overflow, !overflow2, let above = numerator(over, summand) {
            return (.real(ratio(above, divisor)), ratio(above, divisor))
        }
        let value = apply(to: Double(over) / Double(under))
        return (.real(value), value)
    }

    /// The raw number whose value is `value`.
    func raw(of value: Double) -> Double {
        (value * Double(divisor) - Double(summand)) / Double(factor)
    }

    private func numerator(_ raw: Int64, _ summand: Int64) -> Int64? {
        let (product, overflow) = raw.multipliedReportingOverflow(by: factor)
        let (sum, overflow2) = product.addingReportingOverflow(summand)
        return overflow || overflow2 ? nil : sum
    }

    private func ratio(_ above: Int64, _ below: Int64) -> Double {
        Double(above) / Double(below)
    }
}
