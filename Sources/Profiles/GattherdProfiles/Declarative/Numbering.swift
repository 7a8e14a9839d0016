import GattherdGATT
import GattherdModel

/// The numbering of several values of one metric in a payload: the second temperature is
/// `temperature_2`.
///
/// A metric of the group may have values outside of it, which count too.
struct Numbering: Hashable, Sendable {
    /// The maximum number of values of a metric.
    static let most = 8

    /// The indices of the metrics of first values.
    private let first: [Int]
    /// The names of these metrics.
    private let names: [String]
    /// The position in ``first`` of each metric; `nil` for those that are not numbered.
    private let positions: [Int?]

    /// Creates the numbering of the metrics that the steps of a group give.
    ///
    /// - Parameters:
    ///   - group: The steps.
    ///   - metrics: All metrics so far. Those of second values come after them in the order of first values, then
    ///     those of third values, and so on.
    init(_ group: ArraySlice<DecodeProgram.Step>, _ metrics: [MetricDescriptor]) {
        var first: [Int] = []
        for metric in group.flatMap({ [$0.metric, $0.reason] }).compactMap(\.self) where !first.contains(metric) {
            first.append(metric)
        }
        self.first = first
        names = first.map { metrics[$0].name }
        positions = metrics.indices.map { first.firstIndex(of: $0) }
    }

    /// Returns true for a metric of first values.
    func contains(_ metric: Int) -> Bool { position(of: metric) != nil }

    /// Returns true for a metric of second or further values.
    func isFurther(_ metric: Int) -> Bool {
        (positions.count..<positions.count + (Self.most - 1) * first.count).contains(metric)
    }

    private func position(of metric: Int) -> Int? { positions.indices.contains(metric) ? positions[metric] : nil }

    /// Returns the metrics of second and further values.
    func further(_ metrics: [MetricDescriptor]) -> [MetricDescriptor] {
        (2...Self.most).flatMap { number in first.map { Self.metric(metrics[$0], number) } }
    }

    private static func metric(_ metric: MetricDescriptor, _ number: Int) -> MetricDescriptor {
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
        for index in samples.indices[start...] {
            let metric = samples[index].metric
            guard let position = position(of: metric) else { continue }
            let number = samples[start..<index].count { base(of: $0.metric) == metric }
            guard number < Self.most else { throw tooMany(names[position]) }
            guard number > 0 else { continue }
            let further = positions.count + (number - 1) * first.count + position
            samples[index] = Sample(metric: further, value: samples[index].value)
        }
    }

    private func tooMany(_ name: String) -> PayloadError {
        let advice = "numbered metrics end at '\(name)_\(Self.most)', so the profile needs a list"
        return .invalid(reason: "it has more than \(Self.most) values of '\(name)'; \(advice)")
    }

    /// Returns the metric of the first value; metrics that are not numbered are unchanged.
    private func base(of metric: Int) -> Int {
        isFurther(metric) ? first[(metric - positions.count) % first.count] : metric
    }
}
