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
        var padding: RoundPadding?
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
            if rounds == 2 { padding = roundPadding(ofGroup: index, samples[first..<round]) }
            if rounds > 1 { padding?.pad(&samples, from: round, rounds: rounds) }
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
        return numbering.contains(metric)
    }

    /// Returns the padding of a group's lists after its first round; `nil` for a step that is not a group.
    private func roundPadding(ofGroup index: Int, _ first: ArraySlice<Sample>) -> RoundPadding? {
        guard case .group(let end, _) = steps[index].action else { return nil }
        var metrics: [Int] = []
        for step in steps[index + 1..<end] {
            guard case .once = step.count, let metric = step.metric, !isNumbered(metric) else { continue }
            for list in [metric, step.reason].compactMap(\.self) where !metrics.contains(list) { metrics.append(list) }
        }
        return RoundPadding(metrics, first)
    }
}
