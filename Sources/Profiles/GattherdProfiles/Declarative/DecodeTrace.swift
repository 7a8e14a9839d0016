import GattherdModel

/// What a program does with one payload, step by step.
///
/// It costs, so only those who ask how a value came about give one to a ``DecodeMemory``.
final class DecodeTrace {
    enum DecodeOutcome {
        /// The step began and did not end: the payload is rejected there.
        case failed
        /// Its condition does not hold.
        case absent
        case done
        /// A round of a group begins.
        case round(Int)
        /// What a group's size says is more than its fields have.
        case padding
    }

    struct Entry {
        let step: Int
        var octets: Range<Int>
        var outcome: DecodeOutcome
        /// What an expression gave, or the octets as a whole number.
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

    /// The step that began last has ended.
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
