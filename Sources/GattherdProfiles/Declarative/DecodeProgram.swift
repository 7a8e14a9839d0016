import GattherdGATT
import GattherdModel

/// A characteristic's fields as a flat program: one step after the other, nothing is looked up by name.
struct DecodeProgram: Sendable {
    /// One field of the payload, or a value made of earlier ones.
    struct Step: Sendable {
        enum Action: Sendable {
            case read(FieldType)
            /// No octets: some bits of an earlier field; `isFlag` for exactly one of them.
            case part(ConditionNodes.Operand, isFlag: Bool)
            case skip(Int)
        }

        enum Count: Sendable {
            case once
            /// Until the payload ends.
            case rest
            case times(Int)
            /// As often as an earlier field says.
            case register(Int)
        }

        let action: Action
        var count = Count.once
        /// The position of a condition; the step is left out when it does not hold.
        var condition: Int?
        /// Where the raw value is kept for later steps.
        var register: Int?
        /// Octets of a text, or of octets; `nil`: the rest.
        var length: Int?
        /// The metric that the value is a sample of.
        var metric: Int?
        /// The position of the conversion; every field has one.
        let conversion: Int

        init(_ action: Action, conversion: Int) {
            self.action = action
            self.conversion = conversion
        }
    }

    private(set) var steps: [Step] = []
    private(set) var conversions: [Conversion] = []
    var conditions = ConditionNodes()
    /// How many fields are kept for later steps.
    var registerCount = 0

    mutating func add(_ step: Step) {
        steps.append(step)
    }

    mutating func add(_ conversion: Conversion) -> Int {
        conversions.append(conversion)
        return conversions.count - 1
    }

    /// Decodes one payload.
    ///
    /// - Parameters:
    ///   - payload: Any octets.
    ///   - registers: At least ``registerCount`` of them.
    ///   - samples: The samples are appended to it.
    /// - Throws: ``PayloadError`` with the reason of the reject.
    func run(
        _ payload: Span<UInt8>,
        _ registers: inout [Int64],
        into samples: inout [Sample]
    ) throws(PayloadError) {
        for index in registers.indices { registers[index] = 0 }
        var cursor = PayloadCursor(payload)
        for index in steps.indices {
            if let condition = steps[index].condition, conditions.value(of: condition, registers) == 0 { continue }
            switch steps[index].count {
            case .once:
                try run(steps[index], &cursor, &registers, &samples)
            case .rest:
                while cursor.left > 0 { try run(steps[index], &cursor, &registers, &samples) }
            case .times(let count):
                for _ in 0..<count { try run(steps[index], &cursor, &registers, &samples) }
            case .register(let register):
                // A count beyond the payload ends in a truncated field, so it bounds itself.
                var left = registers[register]
                while left > 0 {
                    try run(steps[index], &cursor, &registers, &samples)
                    left -= 1
                }
            }
        }
    }
}
