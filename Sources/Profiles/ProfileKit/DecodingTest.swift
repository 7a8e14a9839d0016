/// A test of a decoder, which `gattherd profile test` runs.
///
///     DecodingTest("C4 09 2D", expect: ["temperature": 25, "moisture": 45])
///     DecodingTest("01 00", "02 00", expect: ["rate": 1, "interval": [0.5, 0.75]])
///     DecodingTest("C4", reject: "truncated")
public struct DecodingTest: Hashable, Sendable {
    /// An expected value: a number, a text, `true`, `false`, `nil` for unknown, or a list of these.
    public struct Value: Hashable, Sendable {
        let text: String
    }

    /// The test in the syntax of declarative profiles.
    let text: String

    /// Creates a test of the values of the last payload.
    ///
    /// - Parameters:
    ///   - payloads: The payloads of one connection or of one advertising device, in hexadecimal.
    ///   - address: The address of the advertising device; `nil` for any.
    ///   - key: Its bind key, 32 hexadecimal digits.
    ///   - values: All metrics and their values.
    public init(
        _ payloads: String...,
        from address: String? = nil,
        key: String? = nil,
        expect values: KeyValuePairs<String, Value>
    ) {
        let members = values.map { "\(Value(stringLiteral: $0.key).text): \($0.value.text)" }
        text = Self.text(payloads, address, key, "\"expect\": {\(members.joined(separator: ", "))}")
    }

    /// Creates a test of the reject of the last payload.
    ///
    /// - Parameters:
    ///   - payloads: The payloads of one connection or of one advertising device, in hexadecimal.
    ///   - address: The address of the advertising device; `nil` for any.
    ///   - key: Its bind key, 32 hexadecimal digits.
    ///   - reason: A part of the reason.
    public init(_ payloads: String..., from address: String? = nil, key: String? = nil, reject reason: String) {
        text = Self.text(payloads, address, key, "\"reject\": \(Value(stringLiteral: reason).text)")
    }

    private static func text(_ payloads: [String], _ address: String?, _ key: String?, _ outcome: String) -> String {
        let quoted = { (text: String) in Value(stringLiteral: text).text }
        let sender = [address.map { "\"address\": \(quoted($0))" }, key.map { "\"key\": \(quoted($0))" }]
        let hex = "\"hex\": [\(payloads.map(quoted).joined(separator: ", "))]"
        return "{\(([hex] + sender.compactMap(\.self) + [outcome]).joined(separator: ", "))}"
    }
}

extension DecodingTest.Value: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral {
    public init(integerLiteral value: Int64) { text = "\(value)" }
    public init(floatLiteral value: Double) { text = "\(value)" }
    public init(booleanLiteral value: Bool) { text = "\(value)" }
}

extension DecodingTest.Value: ExpressibleByStringLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral {
    public init(stringLiteral value: String) {
        let escaped = value.unicodeScalars.map { scalar in
            switch scalar {
            case "\"", "\\": "\\\(scalar)"
            case let scalar where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
                "\\u00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16)
            default: String(scalar)
            }
        }
        text = "\"\(escaped.joined())\""
    }

    public init(nilLiteral: ()) { text = "null" }

    public init(arrayLiteral elements: DecodingTest.Value...) {
        text = "[\(elements.map(\.text).joined(separator: ", "))]"
    }
}
