import GattherdModel

/// The value of a field, and the reason if it is unknown.
struct DecodeOutcome {
    let value: SampleValue
    /// The reason of an unknown value; null without one.
    let reason: SampleValue
    /// True if the raw value is impossible, such as a battery level of 101 %.
    var isImpossible = false

    init(_ value: SampleValue, reason: SampleValue = .null) {
        self.value = value
        self.reason = reason
    }

    /// Returns an unknown value because the raw one is impossible.
    static func impossible(_ reason: String) -> DecodeOutcome {
        var outcome = DecodeOutcome(.null, reason: .text(reason))
        outcome.isImpossible = true
        return outcome
    }
}
