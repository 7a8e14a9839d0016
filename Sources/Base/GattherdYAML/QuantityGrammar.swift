/// The grammar of numbers with a unit.
package enum QuantityGrammar {
    private static let second: Int64 = 1_000_000
    /// The units in microseconds; a year has 365 days.
    private static let durationUnits: [String: Int64] = [
        "us": 1, "ms": 1000, "s": second, "m": 60 * second, "h": 3600 * second, "d": 86_400 * second,
        "w": 7 * 86_400 * second, "y": 365 * 86_400 * second,
    ]
    private static let sizeUnits: [String: Int64] = [
        "B": 1, "kB": 1000, "MB": 1_000_000, "GB": 1_000_000_000, "TB": 1_000_000_000_000,
        "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
    ]

    /// Reads `500ms`, `1.5s`, `5m`, `24h`, `30d`, `2w` or `1y`, rounded down to microseconds.
    package static func duration(_ text: String) -> Duration? {
        scaled(text, by: durationUnits).map { .microseconds($0) }
    }

    /// Reads `500MB` (powers of 1000) or `2GiB` (powers of 1024) as bytes.
    package static func size(_ text: String) -> UInt64? {
        scaled(text, by: sizeUnits).map { UInt64($0) }
    }

    /// A duration in the largest unit of `y d h m s ms` that it is a whole number of, else in seconds.
    package static func text(_ duration: Duration) -> String {
        let microseconds = duration / .microseconds(1)
        for unit in ["y", "d", "h", "m", "s", "ms"] {
            let count = microseconds / Double(durationUnits[unit] ?? 1)
            if count >= 1, let whole = Int64(exactly: count) { return "\(whole)\(unit)" }
        }
        return microseconds == 0 ? "0s" : "\(microseconds / Double(second))s"
    }

    /// Reads digits, optionally a point and at most six more, and a unit; `nil` on overflow.
    private static func scaled(_ text: String, by units: [String: Int64]) -> Int64? {
        let number = text.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let unit = units[String(text[number.endIndex...])], let whole = Int64(parts[0]) else { return nil }
        let (product, overflow) = whole.multipliedReportingOverflow(by: unit)
        guard !overflow, let part = fraction(parts.dropFirst().first, of: unit) else { return nil }
        let (sum, overflow2) = product.addingReportingOverflow(part)
        return overflow2 ? nil : sum
    }

    private static func fraction(_ digits: Substring?, of unit: Int64) -> Int64? {
        guard let digits else { return 0 }
        guard (1...6).contains(digits.utf8.count), let numerator = Int64(digits) else { return nil }
        let denominator = (0..<digits.utf8.count).reduce(Int64(1)) { power, _ in power * 10 }
        let (whole, rest) = unit.quotientAndRemainder(dividingBy: denominator)
        return numerator * whole + numerator * rest / denominator
    }
}
