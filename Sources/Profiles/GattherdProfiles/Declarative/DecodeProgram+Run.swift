import GattherdGATT
import GattherdModel

// The decoding of a payload.
extension DecodeProgram {
    /// Decodes one payload and accepts it.
    ///
    /// - Parameters:
    ///   - payload: The payload, of any content.
    ///   - memory: The decoder state of this program.
    ///   - samples: Receives the samples.
    /// - Throws: ``PayloadError`` with the reason of the reject.
    func decode(
        _ payload: Span<UInt8>,
        _ memory: inout DecodeMemory,
        into samples: inout [Sample]
    ) throws(PayloadError) {
        try run(payload, &memory, into: &samples)
        memory.acceptPayload()
    }

    /// Decodes one payload, which the caller accepts unless it is a repetition.
    ///
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
        if let impossible = memory.impossible, hasOnlyUnknowns(samples[start...]) { throw .invalid(reason: impossible) }
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
            try isWanted(decryption.step, cursor, &memory)
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
    private func hasOnlyUnknowns(_ samples: ArraySlice<Sample>) -> Bool {
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
            if isWanted(index, cursor, &memory) {
                switch steps[index].count {
                case .once: try once(index, &cursor, &memory, &samples, from: start)
                case .rest: try again(index, .max, &cursor, &memory, &samples, from: start)
                case .times(let expression):
                    let count = value(of: expression, cursor, &memory)
                    try again(index, count, &cursor, &memory, &samples, from: start)
                }
            } else {
                memory.trace?.skip(index, at: cursor.offset)
            }
            index = end(ofStep: index)
        }
    }

    /// Returns the index of the step after another one and all that belong to it.
    private func end(ofStep index: Int) -> Int {
        switch steps[index].action {
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

    private func isWanted(_ index: Int, _ cursor: borrowing PayloadCursor, _ memory: inout DecodeMemory) -> Bool {
        guard let condition = steps[index].condition else { return true }
        return value(of: condition, cursor, &memory) != 0
    }

    func once(
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
        case .read, .formula, .increase, .aggregate, .decrypt, .deltas, .objects, .group: nil
        }
    }

    private static func wrongLength(_ count: Int, _ range: ClosedRange<Int>) -> PayloadError {
        let wanted = range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
        return .invalid(reason: "wrong length: \(count) bytes instead of \(wanted)")
    }
}
