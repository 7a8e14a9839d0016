import GattherdGATT
import GattherdModel

/// The numbering of several values of one metric in a payload: the second temperature is
/// `temperature_2`.
///
/// The metrics of first values come first, then those of second values in the same order, and so on.
struct Numbering: Hashable, Sendable {
    /// The maximum number of values of a metric.
    static let most = 8

    /// The indices of the metrics of first values.
    let first: Range<Int>
    /// The names of these metrics.
    let names: [String]

    /// Creates the numbering of metrics that a group has.
    init(_ group: ArraySlice<MetricDescriptor>) {
        first = group.indices
        names = group.map(\.name)
    }

    static func metric(_ metric: MetricDescriptor, _ number: Int) -> MetricDescriptor {
        MetricDescriptor(
            name: "\(metric.name)_\(number)",
            unit: metric.unit,
            kind: metric.kind,
            isRepeated: metric.isRepeated,
            wrapBits: metric.wrapBits,
            domain: metric.domain,
            reset: metric.reset
        )
    }

    /// Assigns the numbered metric to the second and further samples of a metric.
    func apply(to samples: inout [Sample], from start: Int) throws(PayloadError) {
        for index in samples.indices[start...] where first.contains(samples[index].metric) {
            let metric = samples[index].metric
            let number = samples[start..<index].count { base(of: $0.metric) == metric }
            guard number < Self.most else { throw tooMany(metric) }
            samples[index] = Sample(metric: metric + number * first.count, value: samples[index].value)
        }
    }

    private func tooMany(_ metric: Int) -> PayloadError {
        let name = names.dropFirst(metric - first.lowerBound).first ?? ""
        let advice = "numbered metrics end at '\(name)_\(Self.most)', so the profile needs a list"
        return .invalid(reason: "it has more than \(Self.most) values of '\(name)'; \(advice)")
    }

    /// Returns the metric of the first value; metrics outside of the group are unchanged.
    private func base(of metric: Int) -> Int {
        let numbered = first.lowerBound..<first.lowerBound + Self.most * first.count
        return numbered.contains(metric) ? first.lowerBound + (metric - first.lowerBound) % first.count : metric
    }
}
