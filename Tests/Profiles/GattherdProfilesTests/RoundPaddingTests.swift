import GattherdModel
import Testing

@testable import GattherdProfiles

/// Lists of groups whose rounds lack metrics.
struct RoundPaddingTests {
    /// Appends the rounds, each a list of metrics, and returns the metrics of all samples; nulls are negative.
    private func padded(_ rounds: [[Int]], _ metrics: [Int]) -> [Int] {
        var samples = rounds[0].map { Sample(metric: $0, value: .boolean(true)) }
        var padding = RoundPadding(metrics, samples[...])
        for (index, round) in rounds.enumerated().dropFirst() {
            let start = samples.count
            samples += round.map { Sample(metric: $0, value: .boolean(true)) }
            padding.pad(&samples, from: start, rounds: index + 1)
        }
        return samples.map { $0.value == .null ? -$0.metric : $0.metric }
    }

    @Test(
        arguments: [
            ([[1], [1], [1]], [1, 1, 1]), ([[1, 2], [1], [1]], [1, 2, 1, -2, 1, -2]),
            ([[1], [1], [1, 2]], [1, 1, 1, -2, -2, 2]), ([[1], [2], [1]], [1, -2, 2, -1, 1, -2]),
            ([[1, 1], [1], [1]], [1, 1, 1, 1]), ([[], [1], []], [-1, 1, -1]), ([[9], [9, 1]], [9, 9, -1, 1]),
        ] as [([[Int]], [Int])]
    )
    func `a list has a value for each round, nulls stand where rounds lack one`(rounds: [[Int]], metrics: [Int]) {
        #expect(padded(rounds, [1, 2]) == metrics)
    }

    @Test func `samples of earlier rounds are not examined again`() {
        var samples = [Sample(metric: 1, value: .boolean(true))]
        var padding = RoundPadding([1], samples[...])
        for round in 1..<500 {
            // A padding that counted all samples would find too few of the metric.
            samples[round - 1] = Sample(metric: 9, value: .boolean(true))
            samples.append(Sample(metric: 1, value: .boolean(true)))
            padding.pad(&samples, from: round, rounds: round + 1)
        }
        #expect(samples.count == 500)
    }
}
