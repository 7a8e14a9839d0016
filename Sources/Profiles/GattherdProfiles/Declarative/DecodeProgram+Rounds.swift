import GattherdGATT
import GattherdModel

// Steps and groups that are repeated.
extension DecodeProgram {
    /// Repeats a step or a group `limit` times or until the payload ends.
    ///
    /// Each round must consume bytes, so that the loop ends.
    func again(
        _ index: Int,
        _ limit: Int64,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        var count = limit
        var rounds = 0
        let first = samples.count
        while count > 0, limit < .max || cursor.left > 0 {
            let offset = cursor.offset
            let round = samples.count
            clear(group: index, &memory)
            try once(index, &cursor, &memory, &samples, from: start)
            guard cursor.offset > offset else {
                throw .invalid(reason: "the repetition at offset \(offset) consumes no bytes")
            }
            count -= 1
            rounds += 1
            if rounds > 1 { level(group: index, rounds, &samples, from: first, round) }
        }
    }

    /// Resets the registers of a group between rounds, so that absent fields count as 0.
    ///
    /// Numbered metrics apply to the whole payload.
    private func clear(group index: Int, _ memory: inout DecodeMemory) {
        if case .group(let end, _) = steps[index].action { clear(index + 1..<end, &memory) }
    }

    /// Resets the registers of some steps, except those of numbered metrics.
    func clear(_ range: Range<Int>, _ memory: inout DecodeMemory) {
        for step in steps[range] where !isNumbered(step.metric) {
            if let register = step.register { memory.clear(register) }
        }
    }

    private func isNumbered(_ metric: Int?) -> Bool {
        guard let metric, let numbering else { return false }
        return numbering.first.contains(metric)
    }

    /// Pads the lists of a group with null to equal lengths, for metrics that some rounds lack.
    ///
    /// `first` and `last` are the indices of the first samples of the first and the last round.
    private func level(group index: Int, _ rounds: Int, _ samples: inout [Sample], from first: Int, _ last: Int) {
        guard case .group(let end, _) = steps[index].action else { return }
        for step in steps[index + 1..<end] {
            guard case .once = step.count, let metric = step.metric, !isNumbered(metric) else { continue }
            Self.level(metric, rounds, &samples, from: first, last)
            if let reason = step.reason { Self.level(reason, rounds, &samples, from: first, last) }
        }
    }

    private static func level(_ metric: Int, _ rounds: Int, _ samples: inout [Sample], from first: Int, _ last: Int) {
        guard let found = samples[first...].firstIndex(where: { $0.metric == metric }) else { return }
        let missing = rounds - samples[found...].count { $0.metric == metric }
        guard missing > 0 else { return }
        let nulls = repeatElement(Sample(metric: metric, value: .null), count: missing)
        samples.insert(contentsOf: nulls, at: found < last ? samples.endIndex : found)
    }
}
