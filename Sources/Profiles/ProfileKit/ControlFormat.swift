public import GattherdGATT

/// What values a control takes, and how they become octets.
public struct ControlFormat: Sendable {
    enum Kind: Hashable, Sendable {
        case integer(ClosedRange<Int64>)
        case real(ClosedRange<Double>)
        case boolean
        case choice([String])
        case trigger
    }

    /// A value as the host gives it.
    struct Value: Hashable, Sendable {
        /// The number; 0 or 1; the label's position.
        var integer: Int64 = 0
        var real: Double = 0
    }

    let kind: Kind
    let encode: @Sendable (Value, inout PayloadWriter) throws(PayloadError) -> Void

    /// A whole number of `range`, written in the width of `type`, least significant octet first.
    public static func integer<Width: FixedWidthInteger & SendableMetatype>(
        _ range: ClosedRange<Int64>,
        as type: Width.Type
    ) -> Self {
        integer(range) { (value, writer) throws(PayloadError) in try writer.integer(value, as: Width.self) }
    }

    /// A whole number of `range`, written as the profile likes.
    public static func integer(
        _ range: ClosedRange<Int64>,
        encode: @escaping @Sendable (Int64, inout PayloadWriter) throws(PayloadError) -> Void
    ) -> Self {
        ControlFormat(kind: .integer(range)) { (value, writer) throws(PayloadError) in
            guard range.contains(value.integer) else { throw .invalid(reason: "\(value.integer) is out of range") }
            try encode(value.integer, &writer)
        }
    }

    /// A number of `range`, written as the profile likes.
    public static func real(
        _ range: ClosedRange<Double>,
        encode: @escaping @Sendable (Double, inout PayloadWriter) throws(PayloadError) -> Void
    ) -> Self {
        ControlFormat(kind: .real(range)) { (value, writer) throws(PayloadError) in
            guard range.contains(value.real) else { throw .invalid(reason: "\(value.real) is out of range") }
            try encode(value.real, &writer)
        }
    }

    /// On or off.
    public static func boolean(on: [UInt8] = [1], off: [UInt8] = [0]) -> Self {
        ControlFormat(kind: .boolean) { (value, writer) in writer.append(value.integer == 0 ? off : on) }
    }

    /// One of these labels, each with its octets.
    public static func choice(_ choices: KeyValuePairs<String, [UInt8]>) -> Self {
        let octets = choices.map(\.value)
        return ControlFormat(kind: .choice(choices.map(\.key))) { (value, writer) throws(PayloadError) in
            guard let index = Int(exactly: value.integer), octets.indices.contains(index) else {
                throw .invalid(reason: "there is no choice \(value.integer)")
            }
            writer.append(octets[index])
        }
    }

    /// No value: these octets are written.
    public static func trigger(writes octets: [UInt8]) -> Self {
        ControlFormat(kind: .trigger) { (_, writer) in writer.append(octets) }
    }
}
