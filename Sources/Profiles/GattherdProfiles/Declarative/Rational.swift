/// An exact rational number, as scales such as 0.01 have no exact `Double`.
struct Rational: Hashable, Sendable {
    let numerator: Int64
    /// The denominator, at least 1.
    let denominator: Int64

    static let zero = Rational(whole: 0)
    static let one = Rational(whole: 1)

    init(whole: Int64) {
        numerator = whole
        denominator = 1
    }

    /// Creates a reduced fraction; `nil` for a denominator below 1 or a numerator of `Int64.min`.
    private init?(_ numerator: Int64, over denominator: Int64) {
        guard denominator > 0, numerator != .min else { return nil }
        let divisor = max(1, Self.greatestCommonDivisor(numerator.magnitude, denominator.magnitude))
        self.numerator = numerator / Int64(divisor)
        self.denominator = denominator / Int64(divisor)
    }

    /// Parses `5`, `-0.01`, `1e-7`, `1/1024`, `5/9` or `2.1*1024/60`; `nil` if it is invalid or exceeds 64 bits.
    init?(_ text: String) {
        var product = Rational.one
        for (index, factors) in text.split(separator: "/", omittingEmptySubsequences: false).enumerated() {
            for (position, factor) in factors.split(separator: "*", omittingEmptySubsequences: false).enumerated() {
                let digits = factor.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
                guard let number = Self.decimal(Substring(digits)) else { return nil }
                let isDivisor = index > 0 && position == 0
                guard let next = isDivisor ? product.divided(by: number) : product.multiplied(by: number) else {
                    return nil
                }
                product = next
            }
        }
        self = product
    }

    /// The reciprocal; 1 for numbers below 1/`Int64.max`.
    var inverse: Rational { Rational(denominator, over: numerator) ?? .one }

    private func multiplied(by other: Rational) -> Rational? {
        let (numerator, overflow) = numerator.multipliedReportingOverflow(by: other.numerator)
        let (denominator, overflow2) = denominator.multipliedReportingOverflow(by: other.denominator)
        return overflow || overflow2 ? nil : Rational(numerator, over: denominator)
    }

    private func divided(by other: Rational) -> Rational? {
        guard other.numerator > 0 else { return nil }
        let (numerator, overflow) = numerator.multipliedReportingOverflow(by: other.denominator)
        let (denominator, overflow2) = denominator.multipliedReportingOverflow(by: other.numerator)
        return overflow || overflow2 ? nil : Rational(numerator, over: denominator)
    }

    /// The nearest `Double`, correctly rounded while both parts are below 2^53.
    var value: Double { Double(numerator) / Double(denominator) }

    private static func decimal(_ text: Substring) -> Rational? {
        let parts = text.split(whereSeparator: { $0 == "e" || $0 == "E" })
        guard let mantissa = parts.first, parts.count <= 2, text.first != "e", text.last != "e" else { return nil }
        var exponent = 0
        if parts.count == 2 {
            guard let written = Int(parts[1]), (-18...18).contains(written) else { return nil }
            exponent = written
        }
        let digits = mantissa.split(separator: ".", omittingEmptySubsequences: false)
        guard digits.count <= 2, digits.allSatisfy({ !$0.isEmpty }) else { return nil }
        let fraction = digits.count == 2 ? digits[1] : ""
        guard fraction.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        guard let number = Int64(String(digits[0] + fraction)) else { return nil }
        return scaled(number, by: exponent - fraction.utf8.count)
    }

    /// Returns `number` × 10^`exponent`; `nil` on overflow.
    private static func scaled(_ number: Int64, by exponent: Int) -> Rational? {
        guard let power = power(abs(exponent)) else { return nil }
        if exponent < 0 { return Rational(number, over: power) }
        let (product, overflow) = number.multipliedReportingOverflow(by: power)
        return overflow ? nil : Rational(product, over: 1)
    }

    /// Returns 10^`exponent`; `nil` on overflow.
    static func power(_ exponent: Int) -> Int64? {
        guard (0...18).contains(exponent) else { return nil }
        return (0..<exponent).reduce(1) { power, _ in power * 10 }
    }

    static func greatestCommonDivisor(_ left: UInt64, _ right: UInt64) -> UInt64 {
        var (left, right) = (left, right)
        while right != 0 { (left, right) = (right, left % right) }
        return left
    }
}
