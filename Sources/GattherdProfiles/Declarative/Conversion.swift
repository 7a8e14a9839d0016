import GattherdGATT
import GattherdModel

/// What becomes of a field's raw value.
struct Conversion: Sendable {
    /// The metric's name, for the reason of a reject.
    let name: String
    /// Raw values, as their octets, that say that the device does not know.
    var unknown: [UInt64] = []
    /// Labels by raw value; a value without one is not known.
    var labels: [Int64: String]?
    var scale = Scale.identity
    /// What the value must be for the payload to be believed.
    var range: ClosedRange<Double>?

    init(name: String) {
        self.name = name
    }

    /// The value of a whole number, whose octets were `pattern`.
    func value(of raw: Int64, pattern: UInt64) throws(PayloadError) -> SampleValue {
        if unknown.contains(pattern) { return .null }
        if let labels { return labels[raw].map(SampleValue.text) ?? .null }
        return try checked(scale.apply(to: raw))
    }

    /// The value of an unsigned number beyond `Int64`.
    func value(beyond pattern: UInt64) throws(PayloadError) -> SampleValue {
        if unknown.contains(pattern) { return .null }
        return labels == nil ? try checked(.real(scale.apply(to: Double(pattern)))) : .null
    }

    /// The value of a number that need not be whole.
    func value(of raw: Double, pattern: UInt64) throws(PayloadError) -> SampleValue {
        guard raw.isFinite, !unknown.contains(pattern) else { return .null }
        return try checked(.real(scale.isIdentity ? raw : scale.apply(to: raw)))
    }

    /// The value of a medical number.
    func value(of raw: IEEE11073Number, pattern: UInt64) throws(PayloadError) -> SampleValue {
        guard case .finite(let mantissa, let exponent) = raw, !unknown.contains(pattern) else { return .null }
        let value = scale.apply(toMantissa: mantissa, exponent: exponent)
        return try checked(value.map(SampleValue.real) ?? .null)
    }

    private func checked(_ value: SampleValue) throws(PayloadError) -> SampleValue {
        guard let range else { return value }
        let number: Double
        switch value {
        case .integer(let whole): number = Double(whole)
        case .real(let real): number = real
        case .boolean, .text, .null: return value
        }
        guard range.contains(number) else {
            let bounds = "\(text(range.lowerBound)) to \(text(range.upperBound))"
            throw .invalid(reason: "\(name) is \(text(number)), outside \(bounds)")
        }
        return value
    }

    private func text(_ number: Double) -> String {
        Int64(exactly: number).map(String.init) ?? "\(number)"
    }
}
