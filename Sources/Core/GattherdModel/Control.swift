public import GattherdGATT

/// What a control takes.
public enum ControlKind: Hashable, Sendable {
    case integer(ClosedRange<Int64>)
    case real(ClosedRange<Double>)
    case boolean
    /// One of these labels.
    case choice([String])
    /// No value: something happens.
    case trigger
}

/// A value for a control, typed but perhaps out of range.
public enum ControlValue: Hashable, Sendable {
    case integer(Int64)
    case real(Double)
    case boolean(Bool)
    case text(String)
    case trigger
}

/// Something that a profile lets people write.
public struct ControlDescriptor: Hashable, Sendable {
    /// `snake_case`; a part of MQTT topics.
    public var name: String
    public var kind: ControlKind
    public var service: BluetoothUUID?
    public var characteristic: BluetoothUUID
    public var unit: String?
    /// Write with response (an ATT Write Request); else a Write Command.
    public var isAcknowledged: Bool
    /// The shortest time between two writes; of the values set meanwhile the last one counts.
    public var throttle: Duration?
    /// The stream whose readings show what was written, so that an echo is told from a change.
    public var echo: String?
    /// How the device says what came of a write; `nil` when it says nothing but that it has the octets.
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

/// Why a control was not set.
public enum ControlError: Error, Hashable, Sendable {
    case noSuchDevice(String)
    /// The device is listened to and never connected.
    case onlyAdvertises(String)
    case noSuchControl(String)
    /// The value has the wrong type or is out of range; `expected` says what would do.
    case invalidValue(String, expected: String)
    case notReady(device: String)
    /// The peripheral or the way to it refused.
    case refused(String)
    /// A newer value took its place before it was written.
    case superseded
    case timedOut
}

extension ControlError: CustomStringConvertible {
    /// The reason in words; what was asked for is cut where it is long.
    public var description: String {
        switch self {
        case .noSuchDevice(let name): "there is no device '\(name.cut(toBytes: 200))'"
        case .onlyAdvertises(let name): "device '\(name)' only advertises: it is never connected and has no controls"
        case .noSuchControl(let name): "the device has no control '\(name.cut(toBytes: 200))'"
        case .invalidValue(let value, let expected): "'\(value.cut(toBytes: 200))' is not valid: \(expected)"
        case .notReady(let device): "device '\(device)' is not ready"
        case .refused(let detail): "the device refused: \(detail)"
        case .superseded: "superseded by a newer value"
        case .timedOut: "timed out"
        }
    }
}

extension ControlKind {
    /// What would be accepted, in words.
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

    /// The label that `value` is; who sends one that reads as a number, or as true or false, may have sent that.
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
