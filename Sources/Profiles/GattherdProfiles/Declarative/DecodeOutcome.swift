import GattherdModel

/// What a field says: a value, and why there is none.
struct DecodeOutcome {
    let value: SampleValue
    /// A text when there is no value, and it is known why; else null.
    let reason: SampleValue
    /// True when the raw value is one that cannot be, such as a battery level of 101 %.
    var isImpossible = false

    init(_ value: SampleValue, reason: SampleValue = .null) {
        self.value = value
        self.reason = reason
    }

    /// No value, for the raw one cannot be.
    static func impossible(_ reason: String) -> DecodeOutcome {
        var outcome = DecodeOutcome(.null, reason: .text(reason))
        outcome.isImpossible = true
        return outcome
    }
}
