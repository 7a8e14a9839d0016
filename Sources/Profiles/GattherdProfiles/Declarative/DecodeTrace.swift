import GattherdModel

/// The trace of a program that decodes one payload.
///
/// Tracing is slow. Only explanations set a trace in ``DecodeMemory``.
final class DecodeTrace {
    enum DecodeOutcome {
        /// The step failed and rejected the payload.
        case failed
        /// The step's condition is false.
        case absent
        case done
        /// The start of a round of a group.
        case round(Int)
        /// The octets of a group beyond its fields.
        case padding
    }

    struct Entry {
        let step: Int
        var octets: Range<Int>
        var outcome: DecodeOutcome
        /// The value of an expression, or the octets as an integer.
        var number: Int64?
        var samples: [Sample] = []
    }

    private(set) var entries: [Entry] = []
    private var rounds: [Int: Int] = [:]

    func skip(_ step: Int, at offset: Int) {
        entries.append(Entry(step: step, octets: offset..<offset, outcome: .absent))
    }

    func begin(_ step: Int, at offset: Int) {
        entries.append(Entry(step: step, octets: offset..<offset, outcome: .failed))
    }

    /// Records the end of the last step.
    func end(at offset: Int, number: Int64?, samples: ArraySlice<Sample>) {
        guard var entry = entries.popLast() else { return }
        entry.octets = entry.octets.lowerBound..<offset
        entry.outcome = .done
        entry.number = number
        entry.samples = Array(samples)
        entries.append(entry)
    }

    func enter(group step: Int, at offset: Int) {
        rounds[step, default: 0] += 1
        entries.append(Entry(step: step, octets: offset..<offset, outcome: .round(rounds[step] ?? 1)))
    }

    func pad(group step: Int, _ octets: Range<Int>) {
        if !octets.isEmpty { entries.append(Entry(step: step, octets: octets, outcome: .padding)) }
    }
}
