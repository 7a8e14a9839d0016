import GattherdGATT
import GattherdModel

extension DecodeProgram {
    /// Executes one step, which is not a group, once.
    func run(
        _ step: Step,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        switch step.action {
        case .group, .objects, .decrypt: break
        case .deltas(let rule): try run(deltas[rule], &cursor, &memory, &samples)
        case .ignore(let expression):
            guard value(of: expression, cursor, &memory) != 0 else { return }
            memory.isIgnored = true
            throw .invalid(reason: "it is ignored")
        case .skip(let expression):
            try cursor.skip(Int(clamping: max(0, value(of: expression, cursor, &memory))))
        case .compute(let expression, let isBoolean):
            let raw = value(of: expression, cursor, &memory)
            if let register = step.register { memory.store(raw, in: register) }
            emit(try computed(raw, isBoolean, step), step, &memory, &samples)
        case .formula(let expression):
            memory.registers[FieldNames.leftRegister] = Int64(cursor.left)
            let value = expressions.realValue(of: expression, memory.registers)
            emit(conversions[step.conversion].outcome(ofFormula: value), step, &memory, &samples)
        case .reinterpret(let expression, let type):
            let pattern = UInt64(bitPattern: value(of: expression, cursor, &memory))
            emit(conversions[step.conversion].outcome(of: type, pattern: pattern), step, &memory, &samples)
        case .increase(let rule, let position):
            guard let value = increase(rule, position, step, &memory) else { return }
            emit(DecodeOutcome(value), step, &memory, &samples)
        case .aggregate(let aggregate, let metric):
            guard let value = aggregate.value(of: metric, in: samples[start...]) else { return }
            emit(DecodeOutcome(value), step, &memory, &samples)
        case .read(let type):
            emit(try read(type, step, &cursor, &memory), step, &memory, &samples)
        }
    }

    /// Appends the value and, if it is unknown, the reason.
    ///
    /// The next known value resets the reason to null.
    func emit(
        _ outcome: DecodeOutcome,
        _ step: Step,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample]
    ) {
        guard let metric = step.metric, !outcome.isOmitted else { return }
        samples.append(Sample(metric: metric, value: outcome.value))
        if let reason = step.reason, memory.mustEmit(outcome.reason, reason) || step.alwaysHasReason {
            samples.append(Sample(metric: reason, value: outcome.reason))
        }
        if outcome.isImpossible { memory.recordImpossible(outcome.reason, conversions[step.conversion].name) }
    }

    private func computed(_ raw: Int64, _ isBoolean: Bool, _ step: Step) throws(PayloadError) -> DecodeOutcome {
        guard step.metric != nil else { return try conversions[step.conversion].expect(raw) }
        if isBoolean && conversions[step.conversion].labels.isEmpty { return DecodeOutcome(.boolean(raw != 0)) }
        return conversions[step.conversion].outcome(of: raw, pattern: UInt64(bitPattern: raw))
    }

    private func read(
        _ type: FieldType,
        _ step: Step,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory
    ) throws(PayloadError) -> DecodeOutcome {
        switch type {
        case .integer(let octets, let isSigned, let isBigEndian):
            let pattern = try cursor.bits(octets, isBigEndian)
            return try integer(pattern, octets, isSigned, step, &memory)
        case .real(let octets, let isBigEndian):
            return conversions[step.conversion].outcome(of: type, pattern: try cursor.bits(octets, isBigEndian))
        case .sfloat:
            return conversions[step.conversion].outcome(of: type, pattern: try cursor.bits(2, false))
        case .float:
            return conversions[step.conversion].outcome(of: type, pattern: try cursor.bits(4, false))
        case .boolean:
            return Self.boolean(try cursor.u8())
        case .dateTime, .date:
            guard let text = try cursor.calendarText(hasTime: type == .dateTime) else { return DecodeOutcome(.null) }
            return DecodeOutcome(.text(text))
        case .uuid(let octets, let isBigEndian):
            return DecodeOutcome(.text(try cursor.uuid(octets: octets, isBigEndian: isBigEndian).description))
        case .decimal:
            let count = length(of: step, cursor, &memory)
            guard let number = try cursor.decimal(octets: count) else { return .impossible("not a number") }
            return conversions[step.conversion].outcome(of: number, pattern: 0)
        case .terminatedText:
            let count = step.length == nil ? nil : length(of: step, cursor, &memory)
            return DecodeOutcome(.text(try cursor.terminatedText(octets: count)))
        case .text, .wideText, .octets:
            return DecodeOutcome(.text(try text(type, step, &cursor, &memory)))
        }
    }

    private func integer(
        _ pattern: UInt64,
        _ octets: Int,
        _ isSigned: Bool,
        _ step: Step,
        _ memory: inout DecodeMemory
    ) throws(PayloadError) -> DecodeOutcome {
        let shift = Int64(64 - 8 * octets)
        let raw = isSigned ? (Int64(bitPattern: pattern) << shift) >> shift : Int64(bitPattern: pattern)
        if let register = step.register { memory.store(raw, in: register) }
        guard step.metric != nil else { return try conversions[step.conversion].expect(raw) }
        let isBeyond = !isSigned && raw < 0
        return isBeyond
            ? conversions[step.conversion].outcome(beyond: pattern)
            : conversions[step.conversion].outcome(of: raw, pattern: pattern)
    }

    private static func boolean(_ octet: UInt8) -> DecodeOutcome {
        octet <= 1 ? DecodeOutcome(.boolean(octet == 1)) : .impossible("\(octet), which is neither 0 nor 1")
    }

    private func text(
        _ type: FieldType,
        _ step: Step,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory
    ) throws(PayloadError) -> String {
        let count = length(of: step, cursor, &memory)
        guard type != .text else { return try cursor.text(octets: count) }
        guard type != .wideText else { return try cursor.wideText(octets: count) }
        let octets = try cursor.octets(count)
        return Hexadecimal.text(octets.span)
    }

    /// Returns the number of bytes of a text.
    private func length(of step: Step, _ cursor: borrowing PayloadCursor, _ memory: inout DecodeMemory) -> Int {
        guard let length = step.length else { return cursor.left }
        return Int(clamping: max(0, value(of: length, cursor, &memory)))
    }

    private func increase(
        _ rule: Increase.Rule,
        _ position: Int,
        _ step: Step,
        _ memory: inout DecodeMemory
    ) -> SampleValue? {
        let clock = rule.clock ?? rule.counter
        guard memory.isPresent[rule.counter], memory.isPresent[clock] else { return nil }
        let now = (memory.registers[rule.counter], memory.registers[clock])
        guard let (over, under) = memory.increases[position].value(now, rule) else { return nil }
        let (product, isOut) = over.multipliedReportingOverflow(by: rule.factor.map { memory.registers[$0] } ?? 1)
        return isOut ? nil : conversions[step.conversion].ratio(product, under)
    }
}

extension PayloadCursor {
    /// Reads a number such as `-23.50`, with spaces or NULs around it; `nil` for another text.
    fileprivate mutating func decimal(octets count: Int) throws(PayloadError) -> Double? {
        guard count <= left else { throw .truncated(offset: offset, needed: count, left: left) }
        var number = DecimalText()
        for _ in 0..<count { number.append(try u8()) }
        return number.value
    }

    fileprivate mutating func bits(_ octets: Int, _ isBigEndian: Bool) throws(PayloadError) -> UInt64 {
        isBigEndian ? try unsignedBigEndian(octets: octets) : try unsigned(octets: octets)
    }
}
