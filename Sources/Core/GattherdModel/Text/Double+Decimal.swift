extension Double {
    /// The significant digits of a result of double arithmetic; the sixteenth digit is rounding noise.
    public static let reliableDigits = 15
    /// The significant digits of a mean or another non-terminating number.
    public static let meaningfulDigits = 9

    /// The powers of ten that are exact as `Double`.
    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ]

    /// Rounds to the nearest decimal with `digits` significant digits.
    ///
    /// - Parameters:
    ///   - digits: At most 15.
    ///   - least: The decimals to keep, however large the number is.
    /// - Returns: The nearest `Double`; the number itself if it is below about 10^(digits - 23).
    public func rounded(toDigits digits: Int, keepingDecimals least: Int = 0) -> Double {
        guard isFinite, self != 0 else { return self }
        // A lower bound of the logarithm, less than 1 too small: 2^exponent is the power of two below the number.
        let magnitude = (Double(exponent) * 0.301_029_995_663_981_2).rounded(.down)
        var decimals = digits - 1 - Int(magnitude)
        if Self.powersOfTen.indices.contains(decimals), Self.powersOfTen.indices.contains(digits),
            abs(self) * Self.powersOfTen[decimals] >= Self.powersOfTen[digits]
        {
            decimals -= 1
        }
        decimals = Swift.max(decimals, least)
        guard Self.powersOfTen.indices.contains(decimals) else { return self }
        let scaled = self * Self.powersOfTen[decimals]
        // Every double beyond 2^53 is an integer.
        guard abs(scaled) < 0x1p53 else { return self }
        return scaled.rounded() / Self.powersOfTen[decimals]
    }

    /// Converts to the shortest decimal that reads back as the same `Float`: 21.1, not 21.100000381469727.
    public init(shortest number: Float) {
        let exact = Double(number)
        // Whole numbers below 2^24 have no shorter form.
        let isPlain = exact.rounded() == exact && abs(exact) < 0x1p24
        self = isPlain || !number.isFinite ? exact : Double(number.description) ?? exact
    }
}
