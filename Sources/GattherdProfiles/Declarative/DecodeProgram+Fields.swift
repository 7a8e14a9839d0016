import GattherdGATT
import GattherdModel

extension DecodeProgram {
    /// Carries out one step once.
    func run(
        _ step: Step,
        _ cursor: inout PayloadCursor,
        _ registers: inout [Int64],
        _ samples: inout [Sample]
    ) throws(PayloadError) {
        let value: SampleValue
        switch step.action {
        case .skip(let count): return try cursor.skip(count)
        case .part(let operand, let isFlag): value = try part(operand, isFlag, step, registers)
        case .read(let type): value = try read(type, step, &cursor, &registers)
        }
        if let metric = step.metric { samples.append(Sample(metric: metric, value: value)) }
    }

    private func part(
        _ operand: ConditionNodes.Operand,
        _ isFlag: Bool,
        _ step: Step,
        _ registers: [Int64]
    ) throws(PayloadError) -> SampleValue {
        let raw = operand.value(registers)
        let conversion = conversions[step.conversion]
        if isFlag && conversion.labels == nil { return .boolean(raw != 0) }
        return try conversion.value(of: raw, pattern: UInt64(bitPattern: raw))
    }

    private func read(
        _ type: FieldType,
        _ step: Step,
        _ cursor: inout PayloadCursor,
        _ registers: inout [Int64]
    ) throws(PayloadError) -> SampleValue {
        switch type {
        case .integer(let octets, let isSigned, let isBigEndian):
            let pattern = try cursor.bits(octets, isBigEndian)
            return try integer(pattern, octets, isSigned, step, &registers)
        case .real(let octets, let isBigEndian):
            let pattern = try cursor.bits(octets, isBigEndian)
            let single = Double(Float(bitPattern: UInt32(truncatingIfNeeded: pattern)))
            let raw = octets == 4 ? single : Double(bitPattern: pattern)
            return try conversions[step.conversion].value(of: raw, pattern: pattern)
        case .sfloat:
            let word = try cursor.u16()
            return try conversions[step.conversion].value(of: IEEE11073Number(sfloat: word), pattern: UInt64(word))
        case .float:
            let word = try cursor.u32()
            return try conversions[step.conversion].value(of: IEEE11073Number(float: word), pattern: UInt64(word))
        case .boolean:
            return try boolean(try cursor.u8(), step)
        case .text:
            return .text(try cursor.text(octets: step.length ?? cursor.left))
        case .octets:
            let octets = try cursor.octets(step.length ?? cursor.left)
            return .text(Hexadecimal.text(octets.span))
        }
    }

    private func integer(
        _ pattern: UInt64,
        _ octets: Int,
        _ isSigned: Bool,
        _ step: Step,
        _ registers: inout [Int64]
    ) throws(PayloadError) -> SampleValue {
        let shift = Int64(64 - 8 * octets)
        let raw = isSigned ? (Int64(bitPattern: pattern) << shift) >> shift : Int64(bitPattern: pattern)
        if let register = step.register { registers[register] = raw }
        guard step.metric != nil else { return .null }
        let isBeyond = !isSigned && raw < 0
        return isBeyond
            ? try conversions[step.conversion].value(beyond: pattern)
            : try conversions[step.conversion].value(of: raw, pattern: pattern)
    }

    private func boolean(_ octet: UInt8, _ step: Step) throws(PayloadError) -> SampleValue {
        guard octet <= 1 else {
            let name = conversions[step.conversion].name
            throw .invalid(reason: "\(name) is \(octet), which is neither 0 nor 1")
        }
        return .boolean(octet == 1)
    }
}

extension PayloadCursor {
    fileprivate mutating func bits(_ octets: Int, _ isBigEndian: Bool) throws(PayloadError) -> UInt64 {
        isBigEndian ? try unsignedBigEndian(octets: octets) : try unsigned(octets: octets)
    }
}
