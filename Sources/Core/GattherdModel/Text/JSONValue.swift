/// An error in a JSON text, with its position.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The fault, for people.
    package let detail: String
    /// The number of bytes before the fault.
    package let offset: Int

    package var description: String { "not JSON at byte \(offset): \(detail)" }
}

/// A JSON value.
package enum JSONValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    case string(String)
    case array([JSONValue])
    case object([JSONMember])
}

/// A member of an object.
package struct JSONMember: Hashable, Sendable {
    package let name: String
    package let value: JSONValue
    /// The value's JSON text as received.
    package let source: String

    package init(name: String, value: JSONValue, source: String) {
        self.name = name
        self.value = value
        self.source = source
    }
}

extension ControlValue {
    /// Converts a JSON scalar: no value and `null` are a trigger; `nil` for an array or an object.
    package init?(_ json: JSONValue?) {
        switch json {
        case nil, .null: self = .trigger
        case .boolean(let flag): self = .boolean(flag)
        case .integer(let number): self = .integer(number)
        case .real(let number): self = .real(number)
        case .string(let text): self = .text(text)
        case .array, .object: return nil
        }
    }
}

extension SampleValue {
    /// Converts a JSON scalar; `nil` for an array or an object.
    package init?(_ json: JSONValue) {
        switch json {
        case .null: self = .null
        case .boolean(let flag): self = .boolean(flag)
        case .integer(let number): self = .integer(number)
        case .real(let number): self = .real(number)
        case .string(let text): self = .text(text)
        case .array, .object: return nil
        }
    }
}
