import GattherdGATT
import GattherdModel
import Glibc

/// The conversion of a field's raw value; a class, so that steps do not copy its lists.
final class Conversion: Sendable {
    /// The bits of a raw value that means unknown.
    struct Unknown: Hashable, Sendable {
        let pattern: UInt64
        let reason: String?
    }

    /// The label of a raw value or a bit.
    struct Label: Hashable, Sendable {
        let raw: Int64
        let text: String
    }

    /// The field's name, for the reason of a reject.
    let name: String
    let unknown: [Unknown]
    /// The raw value, as bits, that is left out of a list.
    let omitted: UInt64?
    /// The labels, ordered by raw value; other values are unknown.
    let labels: [Label]
    /// The labels of bits, lowest first; the value is a list of the set ones.
    let set: [Label]
    let scale: Scale
    /// The base, if the scaled value is an exponent.
    let base: Double?
    /// The curve from the scaled value to the value.
    let table: ValueTable?
    /// The bounds that values beyond them are set to.
    let clamp: ClosedRange<Double>?
    /// The decimals of a formula's value.
    let decimals: Int
    /// The plausible values; others are unknown.
    let range: ClosedRange<Double>?
    /// The allowed raw values; others reject the payload.
    ///
    /// Empty for any.
    let expected: [Int64]

    init(
        name: String,
        unknown: [Unknown] = [],
        omitted: UInt64? = nil,
        labels: [Label] = [],
        set: [Label] = [],
        scale: Scale = .identity,
        base: Double? = nil,
        table: ValueTable? = nil,
        clamp: ClosedRange<Double>? = nil,
        decimals: Int = 0,
        range: ClosedRange<Double>? = nil,
        expected: [Int64] = []
    ) {
        self.name = name
        (self.unknown, self.omitted) = (unknown, omitted)
        self.labels = labels.sorted { $0.raw < $1.raw }
        self.set = set.sorted { $0.raw < $1.raw }
        self.scale = scale
        self.base = base
        (self.table, self.clamp, self.decimals) = (table, clamp, decimals)
        self.range = range
        self.expected = expected
    }

    /// Converts an integer whose bits were `pattern`.
    func outcome(of raw: Int64, pattern: UInt64) -> DecodeOutcome {
        if pattern == omitted { return .omitted }
        if let unknown = unknownOutcome(pattern) { return unknown }
        if !labels.isEmpty { return DecodeOutcome(label(of: raw).map(SampleValue.text) ?? .null) }
        if !set.isEmpty { return DecodeOutcome(.text(setText(raw))) }
        if let base {
            return checked(.real(pow(base, scale.apply(to: Double(raw))).rounded(toDigits: Double.meaningfulDigits)))
        }
        return checked(scale.apply(to: raw))
    }

    /// Converts an unsigned number beyond `Int64`.
    func outcome(beyond pattern: UInt64) -> DecodeOutcome {
        if let unknown = unknownOutcome(pattern) { return unknown }
        guard labels.isEmpty else { return DecodeOutcome(.null) }
        if !set.isEmpty { return DecodeOutcome(.text(setText(Int64(bitPattern: pattern)))) }
        return checked(.real(scale.apply(to: Double(pattern))))
    }

    /// Converts a floating-point number.
    func outcome(of raw: Double, pattern: UInt64) -> DecodeOutcome {
        if let unknown = unknownOutcome(pattern) { return unknown }
        guard raw.isFinite else { return DecodeOutcome(.null, reason: .text(Self.words(forSpecial: raw))) }
        return checked(.real(scale.apply(to: raw)))
    }

    /// Converts a single-precision number and keeps its digits.
    func outcome(of raw: Float, pattern: UInt64) -> DecodeOutcome {
        if let unknown = unknownOutcome(pattern) { return unknown }
        guard raw.isFinite else { return DecodeOutcome(.null, reason: .text(Self.words(forSpecial: Double(raw)))) }
        return checked(.real(scale.apply(to: Double(shortest: raw), digits: Double.meaningfulDigits)))
    }

    /// Converts an IEEE 11073 number.
    func outcome(of raw: IEEE11073Number, pattern: UInt64) -> DecodeOutcome {
        if let unknown = unknownOutcome(pattern) { return unknown }
        guard case .finite(let mantissa, let exponent) = raw else {
            return DecodeOutcome(.null, reason: raw.reason.map(SampleValue.text) ?? .null)
        }
        let value = scale.apply(toMantissa: mantissa, exponent: exponent)
        return checked(value.map(SampleValue.real) ?? .null)
    }

    /// Converts the value of a formula.
    func outcome(ofFormula value: Double) -> DecodeOutcome {
        guard value.isFinite else { return .impossible("not a number: the formula has no value") }
        let power = pow(10, Double(decimals))
        let scaled = (value * power).rounded()
        return checked(.real(scaled.isFinite ? scaled / power : value))
    }

    /// Converts a quotient of integers; `nil` if it is implausible, which does not reject the payload.
    func ratio(_ over: Int64, _ under: Int64) -> SampleValue? {
        let value = scale.apply(toRatioOf: over, under)
        return range.map { $0.contains(value.1) } ?? true ? value.0 : nil
    }

    /// Rejects a payload whose raw number is not an allowed one.
    func expect(_ raw: Int64) throws(PayloadError) -> DecodeOutcome {
        guard !expected.isEmpty, !expected.contains(raw) else { return DecodeOutcome(.null) }
        let wanted = expected.map(String.init).joined(separator: " or ")
        throw .invalid(reason: "\(name) is \(raw) instead of \(wanted)")
    }

    private func unknownOutcome(_ pattern: UInt64) -> DecodeOutcome? {
        for entry in unknown where entry.pattern == pattern {
            return DecodeOutcome(.null, reason: entry.reason.map(SampleValue.text) ?? .null)
        }
        return nil
    }

    private func label(of raw: Int64) -> String? {
        var (low, high) = (0, labels.count)
        while low < high {
            let middle = (low + high) / 2
            if labels[middle].raw < raw { low = middle + 1 } else { high = middle }
        }
        return low < labels.count && labels[low].raw == raw ? labels[low].text : nil
    }

    private func setText(_ raw: Int64) -> String {
        var text = ""
        for label in set where raw >> label.raw & 1 == 1 { text += text.isEmpty ? label.text : ", " + label.text }
        return text.isEmpty ? "none" : text
    }

    private func checked(_ scaled: SampleValue) -> DecodeOutcome {
        let value = table == nil && clamp == nil ? scaled : adjusted(scaled)
        let number: Double
        switch value {
        case .integer(let whole): number = Double(whole)
        case .real(let real): number = real
        case .boolean, .text, .null: return DecodeOutcome(value)
        }
        guard number.isFinite else { return DecodeOutcome(.null, reason: .text("too large")) }
        guard let range, !range.contains(number) else { return DecodeOutcome(value) }
        return .impossible("\(text(number)), outside \(text(range.lowerBound)) to \(text(range.upperBound))")
    }

    /// Returns the value of the table, within the bounds.
    private func adjusted(_ scaled: SampleValue) -> SampleValue {
        let number: Double
        switch scaled {
        case .integer(let whole): number = Double(whole)
        case .real(let real) where real.isFinite: number = real
        case .real, .boolean, .text, .null: return scaled
        }
        let value = table.map { $0.value(at: number) } ?? number
        guard let clamp else { return .real(value) }
        guard !clamp.contains(value) else { return table == nil ? scaled : .real(value) }
        let bound = min(max(value, clamp.lowerBound), clamp.upperBound)
        if case .integer = scaled, table == nil, let whole = Int64(exactly: bound) { return .integer(whole) }
        return .real(bound)
    }

    private static func words(forSpecial number: Double) -> String {
        number.isNaN ? "not a number" : number < 0 ? "-infinity" : "+infinity"
    }

    private func text(_ number: Double) -> String {
        Int64(exactly: number).map(String.init) ?? "\(number)"
    }
}

/// The value of a field, and the reason if it is unknown.
struct DecodeOutcome: Sendable {
    let value: SampleValue
    /// The reason of an unknown value; null without one.
    let reason: SampleValue
    /// True if the raw value is impossible, such as a battery level of 101 %.
    var isImpossible = false
    /// True if the value is left out.
    var isOmitted = false

    init(_ value: SampleValue, reason: SampleValue = .null) {
        self.value = value
        self.reason = reason
    }

    /// An element that is left out of a list.
    static let omitted: DecodeOutcome = {
        var outcome = DecodeOutcome(.null)
        outcome.isOmitted = true
        return outcome
    }()

    /// Returns an unknown value because the raw one is impossible.
    static func impossible(_ reason: String) -> DecodeOutcome {
        var outcome = DecodeOutcome(.null, reason: .text(reason))
        outcome.isImpossible = true
        return outcome
    }
}
