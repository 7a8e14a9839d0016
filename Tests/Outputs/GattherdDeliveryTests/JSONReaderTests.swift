import GattherdMQTT
import GattherdMachines
import Testing

@testable import GattherdDelivery

@Suite struct JSONReaderTests {
    static let good: [(String, JSONValue)] = [
        ("null", .null), ("true", .boolean(true)), (" false\n", .boolean(false)), ("0", .integer(0)),
        ("-12", .integer(-12)), ("9223372036854775807", .integer(.max)), ("9223372036854775808", .real(0x1p63)),
        ("1.50", .real(1.5)), ("1e3", .real(1000)), ("-0.5E-1", .real(-0.05)), ("\"\"", .string("")),
        (#""a\"\\\/\b\f\n\r\t""#, .string("a\"\\/\u{8}\u{C}\n\r\t")), (#""\u00e9\uD83D\uDE00""#, .string("é😀")),
        ("[]", .array([])), ("[1, [2], {}]", .array([.integer(1), .array([.integer(2)]), .object([])])),
        ("{}", .object([])),
        (
            #"{"a" : 1, "b":{"c": [ ]}}"#,
            .object([
                JSONMember(name: "a", value: .integer(1), source: "1"),
                JSONMember(
                    name: "b",
                    value: .object([JSONMember(name: "c", value: .array([]), source: "[ ]")]),
                    source: #"{"c": [ ]}"#
                ),
            ])
        ),
    ]

    @Test(arguments: good)
    func `valid JSON is read`(text: String, value: JSONValue) throws {
        #expect(try JSONReader.value(of: Array(text.utf8)) == value)
    }

    static let bad = [
        "", " ", "nul", "truex", "01", "-", "1.", "1e", ".5", "+1", "1 2", "\"", "\"\\", "\"\\x\"", "\"\\u12\"",
        #""\u-001""#, #""\u+001""#, #""\uD800""#, #""\uD800\u0041""#, #""\uDC00""#, "\"\u{1}\"", "[", "[1,]", "[1",
        "{", "{1:2}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{"a":1,"a":2}"#, "1e999", "'a'", "NaN",
        String(repeating: "[", count: 100_000),
    ]

    @Test(arguments: bad)
    func `invalid JSON is refused`(text: String) {
        #expect(throws: JSONError.self) { try JSONReader.value(of: Array(text.utf8)) }
    }

    @Test func `a string that is not UTF-8 is refused`() {
        #expect(throws: JSONError.self) { try JSONReader.value(of: [0x22, 0xFF, 0x22]) }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `no octets trap the reader`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let alphabet = Array(#"{}[]",:\u0dD8e+-. 19tfn"#.utf8) + [0xC3, 0x00]
        for _ in 0..<500 {
            let text = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            _ = try? JSONReader.value(of: text)
            let message = BrokerMessage(topic: "", payload: text, length: text.count, isRetained: false)
            _ = try? RequestPayload(message).value("value")
        }
    }
}
