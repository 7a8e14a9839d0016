import GattherdModel

/// Pads the lists of a repeated group with null to equal lengths, for metrics that some rounds lack.
///
/// Only the samples of the newest round are examined, so that the cost grows with the rounds and not with their square.
struct RoundPadding {
    private struct List {
        let metric: Int
        /// The number of samples so far.
        var length = 0
    }

    private var lists: [List]

    /// - Parameters:
    ///   - metrics: The metrics of the group, each once.
    ///   - first: The samples of the first round.
    init(_ metrics: [Int], _ first: ArraySlice<Sample>) {
        lists = metrics.map { metric in List(metric: metric, length: first.count { $0.metric == metric }) }
    }

    /// Pads the lists after the round whose samples begin at `round`.
    ///
    /// A list whose first value is in this round gets the nulls of earlier rounds before it.
    mutating func pad(_ samples: inout [Sample], from round: Int, rounds: Int) {
        for index in lists.indices {
            let (metric, before) = (lists[index].metric, lists[index].length)
            let length = before + samples[round...].count { $0.metric == metric }
            lists[index].length = length
            guard length > 0, length < rounds else { continue }
            let found = before > 0 ? nil : samples[round...].firstIndex(where: { $0.metric == metric })
            let nulls = repeatElement(Sample(metric: metric, value: .null), count: rounds - length)
            samples.insert(contentsOf: nulls, at: found ?? samples.endIndex)
            lists[index].length = rounds
        }
    }
}
