public import GattherdGATT

/// A value that users can write.
public struct Control: Sendable {
    let name: String
    let characteristic: BluetoothUUID
    let service: BluetoothUUID?
    let format: ControlFormat
    let unit: String?
    let isAcknowledged: Bool
    let throttle: Duration?
    let echo: String?

    /// - Parameters:
    ///   - name: The control's name, `snake_case`.
    ///   - characteristic: The characteristic to write.
    ///   - service: The service that contains it; `nil` for any service of the profile.
    ///   - format: The accepted values and their encoding.
    ///   - unit: The unit's symbol.
    ///   - isAcknowledged: True to write with response.
    ///   - throttle: The minimum interval between writes; of the values set meanwhile the last one wins.
    ///   - echo: The stream that reports the written value.
    public init(
        _ name: String,
        _ characteristic: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        takes format: ControlFormat,
        unit: String? = nil,
        isAcknowledged: Bool = true,
        throttle: Duration? = nil,
        echo: String? = nil
    ) {
        self.name = name
        self.characteristic = characteristic
        self.service = service
        self.format = format
        self.unit = unit
        self.isAcknowledged = isAcknowledged
        self.throttle = throttle
        self.echo = echo
    }
}

/// The accepted values of a control and their encoding.
public struct ControlFormat: Sendable {
    enum Kind: Hashable, Sendable {
        case integer(ClosedRange<Int64>)
        case real(ClosedRange<Double>)
        case boolean
        case choice([String])
        case trigger
    }

    /// A value as the host passes it.
    struct Value: Hashable, Sendable {
        /// The number, 0 or 1, or the label's index.
        var integer: Int64 = 0
        var real: Double = 0
    }

    let kind: Kind
    let encode: @Sendable (Value, inout PayloadWriter) throws(PayloadError) -> Void

    /// An integer in `range`, encoded as a little-endian `type`.
    public static func integer<Width: FixedWidthInteger & SendableMetatype>(
        _ range: ClosedRange<Int64>,
        as type: Width.Type
    ) -> Self {
        integer(range) { (value, writer) throws(PayloadError) in try writer.integer(value, as: Width.self) }
    }

    /// An integer in `range`, encoded by a closure.
    public static func integer(
        _ range: ClosedRange<Int64>,
        encode: @escaping @Sendable (Int64, inout PayloadWriter) throws(PayloadError) -> Void
    ) -> Self {
        ControlFormat(kind: .integer(range)) { (value, writer) throws(PayloadError) in
            guard range.contains(value.integer) else { throw .invalid(reason: "\(value.integer) is out of range") }
            try encode(value.integer, &writer)
        }
    }

    /// A floating-point number in `range`, encoded by a closure.
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

    /// A label from a list, each with its octets.
    public static func choice(_ choices: KeyValuePairs<String, [UInt8]>) -> Self {
        let octets = choices.map(\.value)
        return ControlFormat(kind: .choice(choices.map(\.key))) { (value, writer) throws(PayloadError) in
            guard let index = Int(exactly: value.integer), octets.indices.contains(index) else {
                throw .invalid(reason: "there is no choice \(value.integer)")
            }
            writer.append(octets[index])
        }
    }

    /// No value: writes fixed octets.
    public static func trigger(writes octets: [UInt8]) -> Self {
        ControlFormat(kind: .trigger) { (_, writer) in writer.append(octets) }
    }
}
