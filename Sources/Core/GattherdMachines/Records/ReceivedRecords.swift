/// The numbers of received records, as a few sequences with equal steps.
struct ReceivedRecords: Hashable, Sendable {
    /// Numbers from the first to the last.
    struct Run: Hashable, Sendable {
        var first: Int64
        var last: Int64
        var step: Int64

        func contains(_ number: Int64) -> Bool {
            (first...last).contains(number) && (number - first).isMultiple(of: max(1, step))
        }

        var isSingle: Bool { first == last }
    }

    /// The maximum number of sequences; beyond them the lowest is dropped, so that its records may be stored twice.
    private static let most = 64

    private(set) var runs: [Run] = []

    init(_ runs: [Run] = []) {
        self.runs = Array(runs.suffix(Self.most))
    }

    func contains(_ number: Int64) -> Bool { runs.contains { $0.contains(number) } }

    /// The sequence with the number.
    func run(of number: Int64) -> Run? { runs.first { $0.contains(number) } }

    /// Adds a number that is not contained.
    ///
    /// - Parameters:
    ///   - number: The number.
    ///   - isDense: True if numbers follow each other without a step.
    mutating func insert(_ number: Int64, isDense: Bool) {
        let place =
            runs.firstIndex { !$0.isSingle && Self.extends($0, number) }
            ?? runs.firstIndex { $0.isSingle && (!isDense || abs(number - $0.first) == 1) }
        guard let place else {
            runs.append(Run(first: number, last: number, step: 1))
            if runs.count > Self.most, let lowest = runs.indices.min(by: { runs[$0].last < runs[$1].last }) {
                runs.remove(at: lowest)
            }
            return
        }
        if runs[place].isSingle { runs[place].step = abs(number - runs[place].first) }
        runs[place].first = min(runs[place].first, number)
        runs[place].last = max(runs[place].last, number)
        merge(place)
    }

    private static func extends(_ run: Run, _ number: Int64) -> Bool {
        number == run.last + run.step || number == run.first - run.step
    }

    /// Joins the sequence with one that continues it.
    private mutating func merge(_ place: Int) {
        let run = runs[place]
        let next = runs.firstIndex { $0.first == run.last + run.step && ($0.isSingle || $0.step == run.step) }
        guard let next else { return }
        runs[place].last = runs[next].last
        runs.remove(at: next)
    }

    /// Raises all numbers.
    mutating func raiseNumbers(by round: Int64) {
        runs = runs.map { Run(first: $0.first + round, last: $0.last + round, step: $0.step) }
    }

    /// Removes the numbers through `number`.
    mutating func removeAll(through number: Int64) {
        runs = runs.compactMap { run in
            guard run.last > number else { return nil }
            var rest = run
            if run.first <= number { rest.first += ((number - run.first) / run.step + 1) * run.step }
            return rest
        }
    }

    /// Returns the numbers between `after` and `last` that are missing; without `after`, those between the sequences.
    func missing(after: Int64?, through last: Int64) -> [ClosedRange<Int64>] {
        var missing: [ClosedRange<Int64>] = []
        var next = after.map { $0 + 1 }
        for run in runs.sorted(by: { $0.first < $1.first }) where run.first <= last {
            if let next, run.first > next { missing.append(next...(run.first - 1)) }
            next = max(next ?? .min, run.last + 1)
        }
        return missing
    }
}
