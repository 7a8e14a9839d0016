package import GattherdGATT
import GattherdYAML

/// The syntax of values in scenarios and orders.
package enum ScenarioValue {
    package static let durationWords = "a duration; write for example 500ms, 30s or 5m"

    /// Parses `0`, or a number with a unit, of at most a day.
    package static func duration(_ text: String) -> Duration? {
        if text == "0" { return .zero }
        return QuantityGrammar.duration(text).flatMap { $0 <= .seconds(86_400) ? $0 : nil }
    }

    package static func boolean(_ text: String) -> Bool? {
        switch text {
        case "true", "yes", "on": true
        case "false", "no", "off": false
        default: nil
        }
    }

    package static let rateWords = "a number of notifications per second: 0, or 0.001 to 1000"

    package static func rate(_ text: String) -> Double? {
        Double(text).flatMap { isRate($0) ? $0 : nil }
    }

    static func isRate(_ number: Double) -> Bool {
        number == 0 || (0.001...1000).contains(number)
    }

    package static let octetsWords = "bytes in hexadecimal, for example '16 48'"

    package static func octets(_ text: String) -> [UInt8]? {
        Hexadecimal.octets(text).flatMap { $0.count <= 512 ? $0 : nil }
    }

    /// Parses a decimal number, or a hexadecimal one after `0x`.
    package static func integer<Value: FixedWidthInteger>(_ text: String) -> Value? {
        text.hasPrefix("0x") ? Value(text.dropFirst(2), radix: 16) : Value(text)
    }

    package static let uuidWords = "a UUID; write for example 180d or 7a4bbfe6-999f-4717-b63a-066e06971f59"

    package static func uuid(_ text: String) -> BluetoothUUID? { BluetoothUUID(text) }

    package static let nameWords = "a name of letters, digits, '-' and '_'"

    package static func name(_ text: String) -> String? {
        let allowed = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
        return !text.isEmpty && text.count <= 64 && text.allSatisfy(allowed.contains) ? text : nil
    }
}
