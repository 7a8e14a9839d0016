import GattherdGATT
import GattherdModel

/// The fields of a characteristic as a flat program without look-ups by name.
struct DecodeProgram: Sendable {
    /// A field of the payload, or a value computed from earlier ones.
    struct Step: Sendable {
        enum Action: Sendable {
            case read(FieldType)
            /// The value of an expression; `isTruth` if it is a Boolean. Consumes no bytes.
            case compute(Int, isTruth: Bool)
            /// The value of a formula with real numbers. Consumes no bytes.
            case formula(Int)
            /// The bits of an expression, as another type. Consumes no bytes.
            case reinterpret(Int, FieldType)
            /// The growth of a counter since the last payload; `memory` is the index of its state. Consumes no bytes.
            case increase(Increase.Rule, memory: Int)
            /// An aggregate of another metric's samples in this payload. Consumes no bytes.
            case aggregate(Aggregate, of: Int)
            /// Skips as many bytes as an expression gives.
            case skip(Int)
            /// Decrypts the rest of the payload.
            case decrypt
            /// Ignores the payload if an expression is true.
            case ignore(Int)
            /// Decodes objects by their kind, as a catalogue says.
            case objects(Int)
            /// A group of all steps up to this index; `size` is the register with their length in bytes.
            case group(end: Int, size: Int?)
        }

        enum Count: Sendable {
            case once
            /// Repeated until the payload ends.
            case rest
            /// Repeated as often as an expression gives.
            case times(Int)
        }

        var action: Action
        var count = Count.once
        /// The index of a condition; the step is skipped if it is false.
        var condition: Int?
        /// The register that stores the raw value for later steps.
        var register: Int?
        /// The expression for the length of a text in bytes; `nil` for the rest of the payload.
        var length: Int?
        /// The metric of the sample.
        var metric: Int?
        /// The metric that gives the reason of an unknown value.
        var reason: Int?
        /// True if the reason is emitted beside known values too, as null.
        var alwaysHasReason = false
        /// The index of the conversion.
        let conversion: Int

        init(_ action: Action, conversion: Int) {
            self.action = action
            self.conversion = conversion
        }
    }

    /// The required length of a payload.
    enum Length: Hashable, Sendable {
        case any
        /// No byte may follow the last field.
        case exact
        case octets(ClosedRange<Int>)
    }

    private(set) var steps: [Step] = []
    private(set) var conversions: [Conversion] = []
    var catalogues: [ObjectCatalogue] = []
    var expressions = ExpressionNodes()
    var length = Length.any
    var checksum: Checksum?
    /// The decryption, and the index of its step.
    private(set) var decryption: (rule: Decryption, step: Int)?
    /// The numbering of metrics that a payload can have several of.
    var numbering: Numbering?
    /// The number of values from ``SharedValues``.
    var sharedCount = 0
    /// The registers to share with other characteristics, and the indices of the shared values.
    var shares: [(register: Int, shared: Int)] = []
    /// The number of registers.
    var registerCount = 0
    /// The number of steps with state from earlier payloads.
    private(set) var increaseCount = 0

    mutating func add(_ step: Step) {
        steps.append(step)
        if case .increase = step.action { increaseCount += 1 }
    }

    mutating func add(_ conversion: Conversion) -> Int {
        conversions.append(conversion)
        return conversions.count - 1
    }

    /// Adds a step that decrypts the rest of the payload; a program has one at most.
    mutating func add(_ rule: Decryption, _ step: Step) {
        decryption = (rule, steps.count)
        steps.append(step)
    }

    /// Sets the end of a group after its last step.
    mutating func close(group index: Int, size: Int?) {
        steps[index].action = .group(end: steps.count, size: size)
    }

    /// Removes all reason metrics.
    mutating func removeReasons() {
        for index in steps.indices { steps[index].reason = nil }
    }

    /// Decodes one payload.
    ///
    /// - Parameters:
    ///   - payload: The payload, of any content.
    ///   - memory: The decoder state of this program.
    ///   - samples: Receives the samples.
    /// - Throws: ``PayloadError`` with the reason of the reject.
    func run(
        _ payload: Span<UInt8>,
        _ memory: inout DecodeMemory,
        into samples: inout [Sample]
    ) throws(PayloadError) {
        memory.startPayload(octets: payload.count, sharing: sharedCount)
        if case .octets(let range) = length, !range.contains(payload.count) {
            throw Self.wrongLength(payload.count, range)
        }
        if let checksum { try checksum.verify(payload) }
        var cursor = PayloadCursor(payload)
        let start = samples.count
        try runSteps(payload, &cursor, &memory, &samples, from: start)
        try numbering?.apply(to: &samples, from: start)
        if let impossible = memory.impossible, isNothingKnown(samples[start...]) { throw .invalid(reason: impossible) }
        memory.acceptPayload()
    }

    /// Executes all steps; those after a decryption on the decrypted payload.
    private func runSteps(
        _ payload: Span<UInt8>,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        guard let decryption else {
            try run(steps.indices, &cursor, &memory, &samples, from: start)
            if length == .exact { try cursor.end() }
            return
        }
        try run(0..<decryption.step, &cursor, &memory, &samples, from: start)
        let offset = cursor.offset
        let opened =
            try isWanted(steps[decryption.step], cursor, &memory)
            ? decrypted(payload, from: offset, decryption.rule, &memory)
            : plain(payload, decryption.rule, memory)
        memory.trace?.replace(opened, step: decryption.step, from: offset, of: payload.count)
        var inner = PayloadCursor(opened.span)
        try inner.skip(offset)
        try run(decryption.step + 1..<steps.count, &inner, &memory, &samples, from: start)
        if length == .exact { try inner.end() }
    }

    private func decrypted(
        _ payload: Span<UInt8>,
        from offset: Int,
        _ rule: Decryption,
        _ memory: inout DecodeMemory
    ) throws(PayloadError) -> [UInt8] {
        let opened = try rule.open(payload, from: offset, memory.decryption?.sender)
        if let number = rule.number(of: payload, memory.decryption?.sender) {
            try memory.decryption?.admit(number)
        }
        return opened
    }

    /// Returns a payload that is not encrypted; rejects it if the device has a key.
    private func plain(
        _ payload: Span<UInt8>,
        _ rule: Decryption,
        _ memory: DecodeMemory
    ) throws(PayloadError) -> [UInt8] {
        guard !rule.usesDeviceKey || memory.decryption?.sender?.key == nil else {
            throw .notEncrypted
        }
        return (0..<payload.count).map { payload[$0] }
    }

    /// True if all values are unknown; a payload with an impossible value is then rejected.
    private func isNothingKnown(_ samples: ArraySlice<Sample>) -> Bool {
        let reasons = Set(steps.compactMap(\.reason))
        return samples.allSatisfy { $0.value == .null || reasons.contains($0.metric) }
    }

    /// Executes a range of steps.
    func run(
        _ range: Range<Int>,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        var index = range.lowerBound
        while index < range.upperBound {
            let step = steps[index]
            let next = end(of: step, at: index)
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

    /// Returns the index of the step after another one and all that belong to it.
    private func end(of step: Step, at index: Int) -> Int {
        switch step.action {
        case .group(let end, _): end
        case .objects(let position): catalogues[position].end
        default: index + 1
        }
    }

    /// Returns the value of an expression at this point of the payload.
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
        if case .objects(let position) = step.action {
            return try objects(index, catalogues[position], &cursor, &memory, &samples, from: start)
        }
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
                reason: "the group at offset \(offset) is longer than its size of \(memory.registers[size]) bytes"
            )
        }
        let reached = cursor.offset
        try cursor.skip(Int(clamping: left))
        memory.trace?.pad(group: index, reached..<cursor.offset)
    }

    /// Returns the integer that the last step used, if it consumed no bytes.
    private func number(of step: Step, _ registers: [Int64]) -> Int64? {
        switch step.action {
        case .compute(let expression, _), .reinterpret(let expression, _), .skip(let expression),
            .ignore(let expression):
            expressions.value(of: expression, registers)
        case .read, .formula, .increase, .aggregate, .decrypt, .objects, .group: nil
        }
    }

    /// Repeats a step or a group `most` times or until the payload ends.
    ///
    /// Each round must consume bytes, so that the loop ends.
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

    private static func wrongLength(_ count: Int, _ range: ClosedRange<Int>) -> PayloadError {
        let wanted = range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
        return .invalid(reason: "wrong length: \(count) bytes instead of \(wanted)")
    }
}
