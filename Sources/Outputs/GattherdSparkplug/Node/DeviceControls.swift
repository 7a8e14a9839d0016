import GattherdModel

/// The writable metrics of one device: the controls that its profiles declare and that the settings allow.
struct DeviceControls: Sendable {
    fileprivate struct Control: Sendable {
        let descriptor: ControlDescriptor
        let name: String
        let alias: UInt64
        /// The last written value and its time.
        var written: (value: ControlValue, time: Timestamp)?
    }

    /// The folder of controls; streams cannot have this name.
    private static let folder = "Device Control/"

    private var controls: [Control] = []
    private var aliases: [String: UInt64] = [:]

    /// Replaces the controls; controls of the same name keep their written values.
    ///
    /// - Returns: True if the controls differ from the former ones.
    mutating func describe(_ descriptors: [ControlDescriptor], _ pool: inout AliasPool) -> Bool {
        guard descriptors != controls.map(\.descriptor) else { return false }
        let former = controls
        controls = descriptors.map { descriptor in
            let name = Self.folder + descriptor.name
            let alias = aliases[name] ?? pool.next()
            aliases[name] = alias
            let earlier = former.first { $0.name == name && $0.descriptor.kind == descriptor.kind }
            return Control(descriptor: descriptor, name: name, alias: alias, written: earlier?.written)
        }
        return true
    }

    /// The definitions for a birth, with the last written values.
    func definitions(at time: Timestamp) -> [SparkplugMetric] {
        controls.map { control in
            var metric = control.metric(at: control.written?.time ?? time)
            metric.name = control.name
            metric.datatype = control.descriptor.kind.datatype.rawValue
            metric.unit = control.descriptor.unit
            return metric
        }
    }

    /// Records a written value and returns the metric for DDATA; `nil` if there is no such control.
    mutating func record(_ value: ControlValue, of name: String, at time: Timestamp) -> SparkplugMetric? {
        guard let index = controls.firstIndex(where: { $0.descriptor.name == name }) else { return nil }
        controls[index].written = (value, time)
        return controls[index].metric(at: time)
    }

    /// Returns the control and the value that a metric of DCMD asks for.
    ///
    /// The value is not checked against the control's range.
    ///
    /// - Throws: ``CommandError`` if the metric names no control or has no usable value.
    func request(_ metric: SparkplugMetric) throws(CommandError) -> (control: String, value: ControlValue) {
        let control = controls.first { control in
            metric.name.map { $0 == control.name } ?? (metric.alias == control.alias)
        }
        guard let control else { throw .unknownMetric(metric.name ?? metric.alias.map { "alias \($0)" } ?? "") }
        if control.descriptor.kind == .trigger {
            guard metric.value == .boolean(true) else { throw .invalidValue(control.name) }
            return (control.descriptor.name, .trigger)
        }
        guard let value = metric.controlValue else { throw .invalidValue(control.name) }
        return (control.descriptor.name, value)
    }
}

/// The reason why a metric of a command is ignored.
enum CommandError: Error, Hashable, Sendable, CustomStringConvertible {
    case unknownDevice(String)
    case unknownMetric(String)
    case invalidValue(String)

    var description: String {
        switch self {
        case .unknownDevice(let name): "there is no device '\(name.cut(toBytes: 200))'"
        case .unknownMetric(let name): "there is no writable metric '\(name.cut(toBytes: 200))'"
        case .invalidValue(let name): "the value of '\(name)' has the wrong type"
        }
    }
}

extension DeviceControls.Control {
    fileprivate func metric(at time: Timestamp) -> SparkplugMetric {
        var metric = SparkplugMetric(alias: alias, timestamp: time.milliseconds)
        // A trigger is written as true and is false again at once, like 'Node Control/Rebirth'.
        metric.value = descriptor.kind == .trigger ? .boolean(false) : written?.value.metricValue
        metric.isNull = metric.value == nil
        return metric
    }
}

extension ControlKind {
    fileprivate var datatype: SparkplugDatatype {
        switch self {
        case .integer: .int64
        case .real: .double
        case .boolean, .trigger: .boolean
        case .choice: .string
        }
    }
}

extension ControlValue {
    fileprivate var metricValue: SparkplugMetric.Value? {
        switch self {
        case .integer(let number): .long(UInt64(bitPattern: number))
        case .real(let number): .double(number)
        case .boolean(let flag): .boolean(flag)
        case .text(let text): .string(text)
        case .trigger: nil
        }
    }
}

extension SparkplugMetric {
    /// The value of a command; `nil` if it is not a 64-bit integer, a number, a Boolean or a text.
    fileprivate var controlValue: ControlValue? {
        guard !isNull else { return nil }
        switch value {
        case .int(let bits): return .integer(integer(bits))
        case .long(let bits) where datatype == SparkplugDatatype.uint64.rawValue:
            return Int64(exactly: bits).map { .integer($0) }
        case .long(let bits): return .integer(Int64(bitPattern: bits))
        case .float(let number): return .real(Double(number))
        case .double(let number): return .real(number)
        case .boolean(let flag): return .boolean(flag)
        case .string(let text): return .text(text)
        case .bytes, nil: return nil
        }
    }

    /// The number in field 10; the datatype of the command decides the sign.
    private func integer(_ bits: UInt32) -> Int64 {
        switch datatype.flatMap({ SparkplugDatatype(rawValue: $0) }) {
        case .int8: Int64(Int8(truncatingIfNeeded: bits))
        case .int16: Int64(Int16(truncatingIfNeeded: bits))
        case .int32: Int64(Int32(bitPattern: bits))
        default: Int64(bits)
        }
    }
}
