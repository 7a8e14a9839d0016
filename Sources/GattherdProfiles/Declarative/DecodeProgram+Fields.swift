import GattherdGATT
import GattherdModel

extension DecodeProgram {
    /// Carries out one step, which is no group, once.
    func run(
        _ step: Step,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        switch step.action {
        case .group: break
        case .skip(let expression):
            try cursor.skip(Int(clamping: max(0, value(of: expression, cursor, &memory))))
        case .compute(let expression, let isTruth):
            let raw = value(of: expression, cursor, &memory)
            if let register = step.register { memory.keep(raw, in: register) }
            emit(try computed(raw, isTruth, step), step, &samples)
        case .reinterpret(let expression, let type):
            let pattern = UInt64(bitPattern: value(of: expression, cursor, &memory))
            emit(try number(type, pattern, step), step, &samples)
        case .increase(let rule, let position):
            guard let value = increase(rule, position, step, &memory) else { return }
            emit(Outcome(value), step, &samples)
        case .aggregate(let aggregate, let metric):
            guard let value = aggregate.value(of: metric, in: samples[start...]) else { return }
            emit(Outcome(value), step, &samples)
        case .read(let type):
            emit(try read(type, step, &cursor, &memory), step, &samples)
        }
    }

    private func emit(_ outcome: Outcome, _ step: Step, _ samples: inout [Sample]) {
        guard let metric = step.metric else { return }
        samples.append(Sample(metric: metric, value: outcome.value.isBeyondNumbers ? .null : outcome.value))
        if let reason = step.reason { samples.append(Sample(metric: reason, value: outcome.reason)) }
    }

    private func computed(_ raw: Int64, _ isTruth: Bool, _ step: Step) throws(PayloadError) -> Outcome {
        guard step.metric != nil else { return try conversions[step.conversion].expect(raw) }
        if isTruth && conversions[step.conversion].labels.isEmpty { return Outcome(.boolean(raw != 0)) }
        return try conversions[step.conversion].outcome(of: raw, pattern: UInt64(bitPattern: raw))
    }

    private func read(
        _ type: FieldType,
        _ step: Step,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory
    ) throws(PayloadError) -> Outcome {
        switch type {
        case .integer(let octets, let isSigned, let isBigEndian):
            let pattern = try cursor.bits(octets, isBigEndian)
            return try integer(pattern, octets, isSigned, step, &memory)
        case .real(let octets, let isBigEndian):
            return try number(type, try cursor.bits(octets, isBigEndian), step)
        case .sfloat:
            return try number(type, try cursor.bits(2, false), step)
        case .float:
            return try number(type, try cursor.bits(4, false), step)
        case .boolean:
            return Outcome(try boolean(try cursor.u8(), step))
        case .dateTime, .date:
            guard let text = try cursor.calendarText(hasTime: type == .dateTime) else { return Outcome(.null) }
            return Outcome(.text(text))
        case .uuid(let octets, let isBigEndian):
            return Outcome(.text(try cursor.uuid(octets: octets, isBigEndian: isBigEndian).description))
        case .text, .wideText, .octets:
            return Outcome(.text(try text(type, step, &cursor, &memory)))
        }
    }

    /// A number that is not simply a whole one.
    private func number(_ type: FieldType, _ pattern: UInt64, _ step: Step) throws(PayloadError) -> Outcome {
        let (word, doubleWord) = (UInt16(truncatingIfNeeded: pattern), UInt32(truncatingIfNeeded: pattern))
        switch type {
        case .real(4, _):
            return try conversions[step.conversion].outcome(of: Float(bitPattern: doubleWord), pattern: pattern)
        case .real:
            return try conversions[step.conversion].outcome(of: Double(bitPattern: pattern), pattern: pattern)
        case .sfloat:
            return try conversions[step.conversion].outcome(of: IEEE11073Number(sfloat: word), pattern: pattern)
        case .float:
            return try conversions[step.conversion].outcome(of: IEEE11073Number(float: doubleWord), pattern: pattern)
        case .integer, .boolean, .dateTime, .date, .uuid, .text, .wideText, .octets:
            return Outcome(.null)
        }
    }

    private func integer(
        _ pattern: UInt64,
        _ octets: Int,
        _ isSigned: Bool,
        _ step: Step,
        _ memory: inout DecodeMemory
    ) throws(PayloadError) -> Outcome {
        let shift = Int64(64 - 8 * octets)
        let raw = isSigned ? (Int64(bitPattern: pattern) << shift) >> shift : Int64(bitPattern: pattern)
        if let register = step.register { memory.keep(raw, in: register) }
        guard step.metric != nil else { return try conversions[step.conversion].expect(raw) }
        let isBeyond = !isSigned && raw < 0
        return isBeyond
            ? try conversions[step.conversion].outcome(beyond: pattern)
            : try conversions[step.conversion].outcome(of: raw, pattern: pattern)
    }

    private func boolean(_ octet: UInt8, _ step: Step) throws(PayloadError) -> SampleValue {
        guard octet <= 1 else {
            let name = conversions[step.conversion].name
            throw .invalid(reason: "\(name) is \(octet), which is neither 0 nor 1")
        }
        return .boolean(octet == 1)
    }

    private func text(
        _ type: FieldType,
        _ step: Step,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory
    ) throws(PayloadError) -> String {
        var count = cursor.left
        if let length = step.length { count = Int(clamping: max(0, value(of: length, cursor, &memory))) }
        guard type != .text else { return try cursor.text(octets: count) }
        guard type != .wideText else { return try cursor.wideText(octets: count) }
        let octets = try cursor.octets(count)
        return Hexadecimal.text(octets.span)
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
        return conversions[step.conversion].ratio(over, under)
    }
}

extension SampleValue {
    /// A number that scaling has made too large to be one.
    fileprivate var isBeyondNumbers: Bool {
        if case .real(let number) = self { !number.isFinite } else { false }
    }
}

extension PayloadCursor {
    fileprivate mutating func bits(_ octets: Int, _ isBigEndian: Bool) throws(PayloadError) -> UInt64 {
        isBigEndian ? try unsignedBigEndian(octets: octets) : try unsigned(octets: octets)
    }
}
