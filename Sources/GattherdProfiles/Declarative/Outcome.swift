import GattherdModel

/// What a field says: a value, and why there is none.
struct Outcome {
    let value: SampleValue
    /// A text when the device says that it does not know, and why; else null.
    let reason: SampleValue

    init(_ value: SampleValue, reason: SampleValue = .null) {
        self.value = value
        self.reason = reason
    }
}
