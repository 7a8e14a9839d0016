import GattherdModel

/// The fields of a characteristic as a flat program without look-ups by name.
struct DecodeProgram: Sendable {
    /// A field of the payload, or a value computed from earlier ones.
    struct Step: Sendable {
        enum Action: Sendable {
            case read(FieldType)
            /// The value of an expression; `isBoolean` if it is a Boolean. Consumes no bytes.
            case compute(Int, isBoolean: Bool)
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
            /// Continues lists with decoded differences.
            case deltas(Int)
            /// Ignores the payload if an expression is true.
            case ignore(Int)
            /// Decodes objects by their kind, with a catalogue.
            case objects(Int)
            /// A group of all steps up to this index; `size` is the register with their length in bytes.
            case group(end: Int, size: Int?)
        }

        enum Count: Sendable {
            case once
            /// Repeated until the payload ends.
            case rest
            /// Repeated as many times as an expression yields.
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

    let steps: [Step]
    let conversions: [Conversion]
    let catalogues: [ObjectCatalogue]
    let deltas: [DeltaRule]
    let expressions: ExpressionNodes
    let length: Length
    let checksum: Checksum?
    /// The decryption, and the index of its step.
    let decryption: (rule: Decryption, step: Int)?
    /// The numbering of metrics that a payload can have several of.
    let numbering: Numbering?
    /// The number of values from ``SharedValues``.
    let sharedCount: Int
    /// The registers to share with other characteristics, and the indices of the shared values.
    let shares: [(register: Int, shared: Int)]
    /// The number of registers.
    let registerCount: Int
    /// The number of steps with state from earlier payloads.
    let increaseCount: Int

    init(_ draft: DecodeProgramDraft) {
        // `map` makes arrays without spare room: the daemon keeps the programs of all profiles.
        (steps, conversions) = (draft.steps.map(\.self), draft.conversions.map(\.self))
        (catalogues, deltas) = (draft.catalogues, draft.deltas)
        (expressions, length, checksum) = (draft.expressions, draft.length, draft.checksum)
        (decryption, numbering) = (draft.decryption, draft.numbering)
        (sharedCount, shares) = (draft.sharedCount, draft.shares)
        (registerCount, increaseCount) = (draft.registerCount, draft.increaseCount)
    }
}
