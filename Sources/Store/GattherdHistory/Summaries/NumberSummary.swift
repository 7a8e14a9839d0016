import GattherdModel

/// The count, sum, minimum and maximum of numbers.
struct NumberSummary {
    /// The maximum of a row, more than an hour can have: sums do not overflow, whatever a damaged row has.
    private static let most: Int64 = 1 << 40

    private(set) var n: Int64
    private(set) var min: SampleValue
    private(set) var max: SampleValue
    private var rawSum: Double
    /// The rounding error of ``rawSum`` (Kahan), so that the sum does not depend on the order.
    private var lost = 0.0

    var sum: Double { rawSum.isFinite && lost.isFinite ? rawSum + lost : rawSum }

    var mean: Double { sum / Double(n) }

    /// Creates a summary of `value`; `nil` unless it is a finite number.
    init?(_ value: SampleValue) {
        guard let number = value.numberOrFlag, number.isFinite else { return nil }
        self.init(n: 1, sum: number, min: value, max: value)
    }

    /// Creates a summary; `nil` if `min` and `max` are not numbers.
    init?(n: Int64, sum: Double, min: SampleValue, max: SampleValue) {
        guard n > 0, min.numberOrFlag != nil, max.numberOrFlag != nil else { return nil }
        self.n = Swift.min(n, Self.most)
        rawSum = sum
        self.min = min
        self.max = max
    }

    mutating func add(_ other: NumberSummary) {
        n += other.n
        add(other.rawSum)
        lost += other.lost
        if other.min.isLess(than: min) { min = other.min }
        if max.isLess(than: other.max) { max = other.max }
    }

    /// Adds a number to the sum by Neumaier's variant of compensated summation.
    private mutating func add(_ number: Double) {
        let next = rawSum + number
        lost += abs(rawSum) >= abs(number) ? (rawSum - next) + number : (number - next) + rawSum
        rawSum = next
    }
}

extension SampleValue {
    /// Compares integers exactly, also those that are equal as `Double`.
    fileprivate func isLess(than other: SampleValue) -> Bool {
        if case .integer(let left) = self, case .integer(let right) = other { return left < right }
        guard let left = numberOrFlag, let right = other.numberOrFlag else { return false }
        return left < right
    }
}
