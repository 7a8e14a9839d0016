import GattherdGATT
import GattherdModel

/// How several values of one metric in a payload become metrics of their own: the second temperature is
/// `temperature_2`.
///
/// The metrics of second values come after all first ones, in the same order, then those of third values, and so on.
struct Numbering: Hashable, Sendable {
    /// How many values of a metric a payload can have.
    static let most = 8

    /// The positions of the metrics of first values.
    let first: Range<Int>

    static func metric(_ metric: MetricDescriptor, _ number: Int) -> MetricDescriptor {
        MetricDescriptor(
            name: "\(metric.name)_\(number)",
            unit: metric.unit,
            kind: metric.kind,
            isRepeated: metric.isRepeated,
            wrapBits: metric.wrapBits
        )
    }

    /// Gives each sample but the first of its metric the metric of its number.
    func apply(to samples: inout [Sample], from start: Int) throws(PayloadError) {
        for index in samples.indices[start...] where first.contains(samples[index].metric) {
            let metric = samples[index].metric
            let number = samples[start..<index].count { base(of: $0.metric) == metric }
            guard number < Self.most else { throw .invalid(reason: "it has more than \(Self.most) values of one kind") }
            samples[index] = Sample(metric: metric + number * first.count, value: samples[index].value)
        }
    }

    private func base(of metric: Int) -> Int {
        metric < first.lowerBound ? metric : first.lowerBound + (metric - first.lowerBound) % max(1, first.count)
    }
}
