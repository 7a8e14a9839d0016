import CGattherdProfile
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
    let answer: Answer?

    /// - Parameters:
    ///   - name: The control's name, `snake_case`.
    ///   - characteristic: The characteristic to write.
    ///   - service: The service that contains it; `nil` for any service of the profile.
    ///   - format: The accepted values and their encoding.
    ///   - unit: The unit's symbol.
    ///   - isAcknowledged: True to write with response.
    ///   - throttle: The minimum interval between writes; of the values set meanwhile the last one wins.
    ///   - echo: The stream that reports the written value.
    ///   - answer: The device's response to a write; `nil` if none is awaited.
    public init(
        _ name: String,
        _ characteristic: BluetoothUUID,
        in service: BluetoothUUID? = nil,
        takes format: ControlFormat,
        unit: String? = nil,
        isAcknowledged: Bool = true,
        throttle: Duration? = nil,
        echo: String? = nil,
        answer: Answer? = nil
    ) {
        self.name = name
        self.characteristic = characteristic
        self.service = service
        self.format = format
        self.unit = unit
        self.isAcknowledged = isAcknowledged
        self.throttle = throttle
        self.echo = echo
        self.answer = answer
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

    /// A label from a list, each with its bytes.
    public static func choice(_ choices: KeyValuePairs<String, [UInt8]>) -> Self {
        let octets = choices.map(\.value)
        return ControlFormat(kind: .choice(choices.map(\.key))) { (value, writer) throws(PayloadError) in
            guard let index = Int(exactly: value.integer), octets.indices.contains(index) else {
                throw .invalid(reason: "there is no choice \(value.integer)")
            }
            writer.append(octets[index])
        }
    }

    /// No value: writes fixed bytes.
    public static func trigger(writes octets: [UInt8]) -> Self {
        ControlFormat(kind: .trigger) { (_, writer) in writer.append(octets) }
    }
}

extension Control {
    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_control>? {
        var raw = unsafe gattherd_control()
        unsafe raw.struct_size = UInt32(MemoryLayout<gattherd_control>.size)
        unsafe raw.flags = isAcknowledged ? 0 : GATTHERD_WRITE_WITHOUT_RESPONSE
        unsafe raw.name = memory.text(name)
        unsafe raw.uuid = memory.text(characteristic.canonical)
        unsafe raw.service = memory.text(service?.canonical)
        unsafe raw.unit = memory.text(unit)
        unsafe raw.echo = memory.text(echo)
        unsafe raw.throttle_milliseconds = throttle?.milliseconds ?? 0
        unsafe raw.answer = answer?.table(in: &memory)
        unsafe format.kind.fill(&raw, in: &memory)
        return unsafe memory.value(raw)
    }
}

extension ControlFormat.Kind {
    fileprivate func fill(_ raw: inout gattherd_control, in memory: inout TableMemory) {
        switch self {
        case .integer(let range):
            unsafe raw.kind = GATTHERD_CONTROL_INTEGER
            unsafe raw.integer_min = range.lowerBound
            unsafe raw.integer_max = range.upperBound
        case .real(let range):
            unsafe raw.kind = GATTHERD_CONTROL_REAL
            unsafe raw.real_min = range.lowerBound
            unsafe raw.real_max = range.upperBound
        case .boolean:
            unsafe raw.kind = GATTHERD_CONTROL_BOOLEAN
        case .choice(let labels):
            let labels = unsafe labels.map { unsafe memory.text($0) }
            unsafe raw.kind = GATTHERD_CONTROL_CHOICE
            unsafe raw.label_count = UInt32(labels.count)
            unsafe raw.labels = memory.array(labels)
        case .trigger:
            unsafe raw.kind = GATTHERD_CONTROL_TRIGGER
        }
    }
}
