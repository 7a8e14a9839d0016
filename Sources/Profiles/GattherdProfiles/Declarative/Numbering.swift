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
    /// For the position of a reason, the position of the metric that it belongs to; `nil` for values.
    private let values: [Int?]

    /// Creates the numbering of the metrics that the steps of a group give, and of their reasons.
    ///
    /// - Parameters:
    ///   - group: The steps.
    ///   - steps: All steps so far: also an earlier field of a metric may give it reasons.
    ///   - metrics: All metrics so far. Those of second values come after them in the order of first values, then
    ///     those of third values, and so on.
    init(_ group: ArraySlice<DecodeProgram.Step>, of steps: [DecodeProgram.Step], _ metrics: [MetricDescriptor]) {
        var first: [Int] = []
        var values: [Int?] = []
        for metric in group.compactMap(\.metric) where !first.contains(metric) {
            let position = first.count
            (first, values) = (first + [metric], values + [nil])
            guard let reason = steps.lazy.filter({ $0.metric == metric }).compactMap(\.reason).first else { continue }
            (first, values) = (first + [reason], values + [position])
        }
        (self.first, self.values) = (first, values)
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
    ///
    /// A reason follows its value, and has the same number.
    func apply(to samples: inout [Sample], from start: Int) throws(PayloadError) {
        var counts = [Int](repeating: 0, count: first.count)
        for index in samples.indices[start...] {
            guard let position = position(of: samples[index].metric) else { continue }
            let value = values[position]
            if value == nil { counts[position] += 1 }
            let number = counts[value ?? position]
            guard number <= Self.most else { throw tooMany(names[position]) }
            guard number > 1 else { continue }
            let further = positions.count + (number - 2) * first.count + position
            samples[index] = Sample(metric: further, value: samples[index].value)
        }
    }

    private func tooMany(_ name: String) -> PayloadError {
        let advice = "numbered metrics end at '\(name)_\(Self.most)', so the profile needs a list"
        return .invalid(reason: "it has more than \(Self.most) values of '\(name)'; \(advice)")
    }
}
