public import GattherdGATT

/// The type and range of a control's values.
public enum ControlKind: Hashable, Sendable {
    case integer(ClosedRange<Int64>)
    case real(ClosedRange<Double>)
    case boolean
    /// A label from a list.
    case choice([String])
    /// No value.
    case trigger
}

/// A value for a control, before the range check.
public enum ControlValue: Hashable, Sendable {
    case integer(Int64)
    case real(Double)
    case boolean(Bool)
    case text(String)
    case trigger
}

/// A control of a profile.
public struct ControlDescriptor: Hashable, Sendable {
    /// The name, `snake_case`; a level of MQTT topics.
    public var name: String
    public var kind: ControlKind
    public var service: BluetoothUUID?
    public var characteristic: BluetoothUUID
    public var unit: String?
    /// True for an ATT Write Request, false for a Write Command.
    public var isAcknowledged: Bool
    /// The minimum interval between writes; of the values set meanwhile the last one wins.
    public var throttle: Duration?
    /// The stream that reports written values, to tell an echo from a change.
    public var echo: String?
    /// The rule for the device's response to a write; `nil` if only ATT acknowledges it.
    public var answer: ResponseRule?

    public init(
        name: String,
        kind: ControlKind,
        service: BluetoothUUID? = nil,
        characteristic: BluetoothUUID,
        unit: String? = nil,
        isAcknowledged: Bool = true,
        throttle: Duration? = nil,
        echo: String? = nil,
        answer: ResponseRule? = nil
    ) {
        self.name = name
        self.kind = kind
        self.service = service
        self.characteristic = characteristic
        self.unit = unit
        self.isAcknowledged = isAcknowledged
        self.throttle = throttle
        self.echo = echo
        self.answer = answer
    }
}

/// The reason why a control was not set.
public enum ControlError: Error, Hashable, Sendable {
    case noSuchDevice(String)
    /// The device only advertises and is never connected.
    case onlyAdvertises(String)
    case noSuchControl(String)
    /// The value has the wrong type or is out of range; `expected` describes valid ones.
    case invalidValue(String, expected: String)
    case notReady(device: String)
    /// The peripheral or BlueZ refused the write.
    case refused(String)
    /// Another gateway owns the device, or the lease of this one has ended; `owner` is the owner, if known.
    case notOwner(device: String, owner: String?)
    /// The request is for another epoch of the lease than the current one.
    case otherEpoch(present: Int64)
    /// A request with the same transaction and epoch was carried out, or is being carried out.
    case repeated
    /// A newer value replaced it before it was written.
    case superseded
    case timedOut
}

extension ControlError: CustomStringConvertible {
    /// The reason in words; long input is cut.
    public var description: String {
        switch self {
        case .noSuchDevice(let name): "there is no device '\(name.cut(toBytes: 200))'"
        case .onlyAdvertises(let name): "device '\(name)' only advertises: it is never connected and has no controls"
        case .noSuchControl(let name): "the device has no control '\(name.cut(toBytes: 200))'"
        case .invalidValue(let value, let expected): "'\(value.cut(toBytes: 200))' is invalid; expected \(expected)"
        case .notReady(let device): "device '\(device)' is not ready"
        case .refused(let detail): "the device refused: \(detail)"
        case .notOwner(let device, let owner?): "gateway '\(owner)' owns the device '\(device)'; ask that one"
        case .notOwner(let device, nil): "this gateway does not own the device '\(device)' now"
        case .otherEpoch(let present): "the epoch of the lease is \(present) now"
        case .repeated: "a request with this transaction was carried out before"
        case .superseded: "superseded by a newer value"
        case .timedOut: "timed out"
        }
    }
}

extension ControlKind {
    /// A description of the valid values.
    public var expectation: String {
        switch self {
        case .integer(let range): "an integer from \(range.lowerBound) to \(range.upperBound)"
        case .real(let range): "a number from \(range.lowerBound) to \(range.upperBound)"
        case .boolean: "true or false"
        case .choice(let labels): "one of \(labels.joined(separator: ", "))"
        case .trigger: "any value, or none"
        }
    }

    /// Checks `value` and converts it where nothing is lost, for example `5.0` to the integer 5 or to the label "5".
    ///
    /// - Throws: ``ControlError/invalidValue(_:expected:)``.
    public func accept(_ value: ControlValue) throws(ControlError) -> ControlValue {
        switch (self, value) {
        case (.trigger, _): return .trigger
        case (.integer(let range), .integer(let number)) where range.contains(number): return value
        case (.integer(let range), .real(let number)):
            if let whole = Int64(exactly: number), range.contains(whole) { return .integer(whole) }
        case (.real(let range), .real(let number)) where range.contains(number): return value
        case (.real(let range), .integer(let number)) where range.contains(Double(number)): return .real(Double(number))
        case (.boolean, .boolean): return value
        case (.choice(let labels), _):
            if let label = Self.label(value, among: labels) { return .text(label) }
        default: break
        }
        throw .invalidValue(value.description, expected: expectation)
    }

    /// Returns the label that `value` names.
    ///
    /// JSON clients may send `5` or `true` for the labels "5" and "true".
    private static func label(_ value: ControlValue, among labels: [String]) -> String? {
        let exact = labels.first { $0 == value.description }
        switch value {
        case .text, .boolean: return exact
        case .integer(let number): return exact ?? labels.first { Double($0) == Double(number) }
        case .real(let number): return exact ?? labels.first { Double($0) == number }
        case .trigger: return nil
        }
    }
}

extension ControlValue: CustomStringConvertible {
    public var description: String {
        switch self {
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .boolean(let flag): "\(flag)"
        case .text(let text): text
        case .trigger: ""
        }
    }
}

extension ControlValue {
    /// Reads a value from the command line or a test: a number, true or false, else text; an empty text is a trigger.
    package init(words: String) {
        if words.isEmpty {
            self = .trigger
        } else if let number = Int64(words) {
            self = .integer(number)
        } else if let number = Double(words), number.isFinite {
            self = .real(number)
        } else {
            self = Bool(words).map { .boolean($0) } ?? .text(words)
        }
    }
}

/// The controls that an output may set.
public struct ControlPermissions: Hashable, Sendable {
    /// True if all controls of devices missing in ``devices`` may be set.
    public var isEverythingAllowed = true
    /// The controls of a device that may be set, by the device's name.
    public var devices: [String: Set<String>] = [:]

    public init() {}

    public func allows(_ control: String, of device: String) -> Bool {
        guard let allowed = devices[device] else { return isEverythingAllowed }
        return allowed.contains(control)
    }
}
