import GattherdModel

/// A number computed from all samples of a metric in a payload.
enum Aggregate: String, CaseIterable, Sendable {
    case count
    case sum
    case mean
    case min
    case max

    /// Returns the number; `nil` if no sample is known.
    func value(of metric: Int, in samples: ArraySlice<Sample>) -> SampleValue? {
        var (count, sum, least, greatest) = (Int64(0), 0.0, Double.infinity, -Double.infinity)
        for sample in samples where sample.metric == metric {
            guard let number = sample.value.number else { continue }
            count += 1
            sum += number
            least = Swift.min(least, number)
            greatest = Swift.max(greatest, number)
        }
        guard count > 0 else { return self == .count ? .integer(0) : nil }
        switch self {
        case .count: return .integer(count)
        case .sum: return .real(sum.rounded(toDigits: Double.reliableDigits))
        case .mean: return .real((sum / Double(count)).rounded(toDigits: Double.meaningfulDigits, keepingDecimals: 3))
        case .min: return .real(least)
        case .max: return .real(greatest)
        }
    }
}
