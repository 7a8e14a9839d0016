import GattherdGATT
import GattherdModel

/// A characteristic's fields as a flat program: one step after the other, nothing is looked up by name.
struct DecodeProgram: Sendable {
    /// One field of the payload, or a value made of earlier ones.
    struct Step: Sendable {
        enum Action: Sendable {
            case read(FieldType)
            /// No octets: what an expression gives; `isTruth` when that is true or false.
            case compute(Int, isTruth: Bool)
            /// No octets: what an expression gives, as the octets of another type.
            case reinterpret(Int, FieldType)
            /// No octets: how a counter has grown since the last payload; the position of the memory of it.
            case increase(Increase.Rule, memory: Int)
            /// No octets: made of all samples of this payload of another metric.
            case aggregate(Aggregate, of: Int)
            /// As many octets as an expression gives.
            case skip(Int)
            /// All steps up to this position, as one; `size` is the register that says how many octets they have.
            case group(end: Int, size: Int?)
        }

        enum Count: Sendable {
            case once
            /// Until the payload ends.
            case rest
            /// As often as an expression says.
            case times(Int)
        }

        var action: Action
        var count = Count.once
        /// The position of a condition; the step is left out when it does not hold.
        var condition: Int?
        /// Where the raw value is kept for later steps.
        var register: Int?
        /// The expression that gives the octets of a text; `nil`: the rest.
        var length: Int?
        /// The metric that the value is a sample of.
        var metric: Int?
        /// The metric that tells why a value is not known.
        var reason: Int?
        /// That metric is there, and null, also beside a value.
        var alwaysHasReason = false
        /// The position of the conversion; every field has one.
        let conversion: Int

        init(_ action: Action, conversion: Int) {
            self.action = action
            self.conversion = conversion
        }
    }

    /// How long a payload must be.
    enum Length: Hashable, Sendable {
        case any
        /// No octet is left after the last field.
        case exact
        case octets(ClosedRange<Int>)
    }

    private(set) var steps: [Step] = []
    private(set) var conversions: [Conversion] = []
    var expressions = ExpressionNodes()
    var length = Length.any
    /// The metrics of which a payload can have several, each a metric of its own.
    var numbering: Numbering?
    /// How many values the program has from ``SharedValues``.
    var sharedCount = 0
    /// The registers that other characteristics get, and as which of the shared values.
    var shares: [(register: Int, shared: Int)] = []
    /// How many fields are kept for later steps.
    var registerCount = 0
    /// How many steps remember earlier payloads.
    private(set) var increaseCount = 0

    mutating func add(_ step: Step) {
        steps.append(step)
        if case .increase = step.action { increaseCount += 1 }
    }

    mutating func add(_ conversion: Conversion) -> Int {
        conversions.append(conversion)
        return conversions.count - 1
    }

    /// Says where a group ends, whose steps are all there now.
    mutating func close(group index: Int, size: Int?) {
        steps[index].action = .group(end: steps.count, size: size)
    }

    /// Tells no longer why values are not known.
    mutating func dropReasons() {
        for index in steps.indices { steps[index].reason = nil }
    }

    /// Decodes one payload.
    ///
    /// - Parameters:
    ///   - payload: Any octets.
    ///   - memory: What was made for this program.
    ///   - samples: The samples are appended to it.
    /// - Throws: ``PayloadError`` with the reason of the reject.
    func run(
        _ payload: Span<UInt8>,
        _ memory: inout DecodeMemory,
        into samples: inout [Sample]
    ) throws(PayloadError) {
        if case .octets(let range) = length, !range.contains(payload.count) {
            throw Self.wrongLength(payload.count, range)
        }
        memory.begin(octets: payload.count, sharing: sharedCount)
        var cursor = PayloadCursor(payload)
        let start = samples.count
        try run(steps.indices, &cursor, &memory, &samples, from: start)
        if length == .exact { try cursor.end() }
        try numbering?.apply(to: &samples, from: start)
        if let impossible = memory.impossible, isNothingKnown(samples[start...]) { throw .invalid(reason: impossible) }
        memory.end()
    }

    /// A value that cannot be does not discard its neighbours; a payload that says nothing else is rejected.
    private func isNothingKnown(_ samples: ArraySlice<Sample>) -> Bool {
        let reasons = Set(steps.compactMap(\.reason))
        return samples.allSatisfy { $0.value == .null || reasons.contains($0.metric) }
    }

    /// Carries out some of the steps.
    private func run(
        _ range: Range<Int>,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        var index = range.lowerBound
        while index < range.upperBound {
            let step = steps[index]
            let next = if case .group(let end, _) = step.action { end } else { index + 1 }
            if isWanted(step, cursor, &memory) {
                switch step.count {
                case .once: try once(index, &cursor, &memory, &samples, from: start)
                case .rest: try again(index, .max, &cursor, &memory, &samples, from: start)
                case .times(let expression):
                    let count = value(of: expression, cursor, &memory)
                    try again(index, count, &cursor, &memory, &samples, from: start)
                }
            } else {
                memory.trace?.skip(index, at: cursor.offset)
            }
            index = next
        }
    }

    /// The value of an expression at this point of the payload.
    func value(of expression: Int, _ cursor: borrowing PayloadCursor, _ memory: inout DecodeMemory) -> Int64 {
        memory.registers[FieldNames.leftRegister] = Int64(cursor.left)
        return expressions.value(of: expression, memory.registers)
    }

    private func isWanted(_ step: Step, _ cursor: borrowing PayloadCursor, _ memory: inout DecodeMemory) -> Bool {
        guard let condition = step.condition else { return true }
        return value(of: condition, cursor, &memory) != 0
    }

    private func once(
        _ index: Int,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        let step = steps[index]
        let offset = cursor.offset
        guard case .group(let end, let size) = step.action else {
            let count = samples.count
            memory.trace?.begin(index, at: offset)
            try run(step, &cursor, &memory, &samples, from: start)
            if let trace = memory.trace {
                let number = number(of: step, memory.registers)
                trace.end(at: cursor.offset, number: number, samples: samples[count...])
            }
            return
        }
        memory.trace?.enter(group: index, at: offset)
        try run(index + 1..<end, &cursor, &memory, &samples, from: start)
        guard let size else { return }
        let (left, isOut) = memory.registers[size].subtractingReportingOverflow(Int64(cursor.offset - offset))
        guard left >= 0, !isOut else {
            throw .invalid(
                reason: "the group at offset \(offset) has more octets than the \(memory.registers[size]) it says"
            )
        }
        let reached = cursor.offset
        try cursor.skip(Int(clamping: left))
        memory.trace?.pad(group: index, reached..<cursor.offset)
    }

    /// What a step that was just carried out had to do with, where that is no octets.
    private func number(of step: Step, _ registers: [Int64]) -> Int64? {
        switch step.action {
        case .compute(let expression, _), .reinterpret(let expression, _), .skip(let expression):
            expressions.value(of: expression, registers)
        case .read, .increase, .aggregate, .group: nil
        }
    }

    /// Carries out a step or a group `most` times or until the payload ends; each time must take octets, or there
    /// would be no end of it.
    private func again(
        _ index: Int,
        _ most: Int64,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        var count = most
        var rounds = 0
        let first = samples.count
        while count > 0, most < .max || cursor.left > 0 {
            let offset = cursor.offset
            let round = samples.count
            forget(group: index, &memory)
            try once(index, &cursor, &memory, &samples, from: start)
            guard cursor.offset > offset else {
                throw .invalid(reason: "what is repeated at offset \(offset) has no octets")
            }
            count -= 1
            rounds += 1
            if rounds > 1 { level(group: index, rounds, &samples, from: first, round) }
        }
    }

    /// Forgets what the last round of a group has read, so that what the next one leaves out counts as 0; numbered
    /// metrics are those of the whole payload.
    private func forget(group index: Int, _ memory: inout DecodeMemory) {
        guard case .group(let end, _) = steps[index].action else { return }
        for step in steps[index + 1..<end] where !isNumbered(step.metric) {
            if let register = step.register { memory.forget(register) }
        }
    }

    private func isNumbered(_ metric: Int?) -> Bool {
        guard let metric, let numbering else { return false }
        return numbering.first.contains(metric)
    }

    /// Makes the lists of a group equally long: what one of the rounds leaves out is null where another one has it.
    ///
    /// `first` and `last` are where the samples of the first round and of the last one begin.
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

    private static func wrongLength(_ count: Int, _ range: ClosedRange<Int>) -> PayloadError {
        let wanted = range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
        return .invalid(reason: "wrong length: \(count) octets instead of \(wanted)")
    }
}
