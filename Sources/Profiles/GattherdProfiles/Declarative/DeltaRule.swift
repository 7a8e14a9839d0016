import GattherdGATT
import GattherdModel

/// A list of signed differences, all of the same width in bits, that continue lists of integers.
struct DeltaRule: Sendable {
    /// The widest difference, in bits.
    static let widest: Int64 = 32

    /// The steps of the lists, in the order of the differences; their registers have the last raw values.
    let channels: [DecodeProgram.Step]
    /// The expression for the width of a difference in bits.
    let bits: Int
    let count: DecodeProgram.Step.Count
}

extension DecodeProgram {
    /// Adds each difference to the last raw value of its list and appends the sum to the list.
    ///
    /// The first difference has the lowest bits of the first byte. With a width of 0 bits nothing is appended.
    func run(
        _ rule: DeltaRule,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample]
    ) throws(PayloadError) {
        let bits = value(of: rule.bits, cursor, &memory)
        guard (0...DeltaRule.widest).contains(bits) else {
            throw .invalid(
                reason: "deltas of \(bits) bits at offset \(cursor.offset); 0 to \(DeltaRule.widest) are possible"
            )
        }
        let width = Int(bits) * rule.channels.count
        guard width > 0 else { return }
        let rounds = try rounds(of: rule, width, cursor, &memory)
        var reader = DeltaReader(width: bits)
        for _ in 0..<rounds {
            for step in rule.channels { try emit(try reader.next(&cursor), step, &memory, &samples) }
        }
    }

    /// Returns the number of differences of each list; the payload has all of them.
    private func rounds(
        of rule: DeltaRule,
        _ width: Int,
        _ cursor: borrowing PayloadCursor,
        _ memory: inout DecodeMemory
    ) throws(PayloadError) -> Int {
        let most = 8 * cursor.left / width
        guard case .times(let expression) = rule.count else { return most }
        let wanted = Int(clamping: max(0, value(of: expression, cursor, &memory)))
        guard wanted <= most else {
            let needed = wanted > Int(UInt16.max) ? Int(UInt16.max) : (wanted * width + 7) / 8
            throw .truncated(offset: cursor.offset, needed: needed, left: cursor.left)
        }
        return wanted
    }

    private func emit(
        _ delta: Int64,
        _ step: Step,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample]
    ) throws(PayloadError) {
        guard let register = step.register, case .read(let type) = step.action else { return }
        let raw = memory.registers[register] &+ delta
        memory.store(raw, in: register)
        let outcome = conversions[step.conversion].outcome(of: raw, pattern: type.pattern(of: raw))
        emit(outcome, step, &memory, &samples)
    }
}

/// Reads signed integers of any width, the lowest bits first.
private struct DeltaReader {
    let width: Int64
    private var bits: UInt64 = 0
    private var count: Int64 = 0

    init(width: Int64) { self.width = width }

    mutating func next(_ cursor: inout PayloadCursor) throws(PayloadError) -> Int64 {
        while count < width {
            bits |= UInt64(try cursor.u8()) << UInt64(count)
            count += 8
        }
        let unused = 64 - width
        let value = Int64(bitPattern: bits << UInt64(unused)) >> unused
        bits >>= UInt64(width)
        count -= width
        return value
    }
}
