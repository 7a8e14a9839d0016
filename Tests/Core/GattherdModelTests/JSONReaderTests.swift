import GattherdModel
import Testing

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

    @Test(.timeLimit(.minutes(1)))
    func `an object with many members is read in a time that grows with its length`() throws {
        let names = (0..<100_000).map { "\"k\($0)\":0" }.joined(separator: ",")
        let value = try JSONReader.value(of: Array("{\(names)}".utf8), maximum: 2 << 20)
        let count = if case .object(let members) = value { members.count } else { 0 }
        #expect(count == 100_000)
        #expect(throws: JSONError.self) {
            try JSONReader.value(of: Array("{\(names),\"k7\":1}".utf8), maximum: 2 << 20)
        }
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

    @Test(arguments: [
        (#"{"a":1,}"#, "not JSON at byte 7: a member's name must be a string"),
        (#"{"a" 1}"#, "not JSON at byte 5: a colon is missing after 'a'"),
        ("[1 2]", "not JSON at byte 3: an array is not closed, or a comma is missing"),
        ("1e999", "not JSON at byte 5: the number 1e999 is too large"),
    ])
    func `an error has the place in the text, and the fault`(text: String, description: String) {
        let error = #expect(throws: JSONError.self) { try JSONReader.value(of: Array("xx\(text)".utf8)[2...]) }
        #expect(error?.description == description)
    }

    @Test func `a text longer than the limit is refused`() {
        let text = Array(#""abc""#.utf8)
        #expect(throws: Never.self) { try JSONReader.value(of: text, maximum: 5) }
        #expect(throws: JSONError.self) { try JSONReader.value(of: text, maximum: 4) }
    }

    @Test func `members are passed in order, also duplicate ones`() throws {
        var members: [String] = []
        try JSONReader.forEachMember(of: Array(#" {"a":1, "b" : [2], "a":null} "#.utf8)[...]) { name, value in
            members.append("\(name)=\(value)")
        }
        #expect(members.count == 3 && members.first == "a=integer(1)" && members.last == "a=null")
        #expect(throws: JSONError.self) { try JSONReader.forEachMember(of: Array("[]".utf8)[...]) { _, _ in } }
        #expect(throws: JSONError.self) { try JSONReader.forEachMember(of: Array("{} 1".utf8)[...]) { _, _ in } }
    }

    @Test(arguments: 1...20) func `no bytes trap the reader`(_: Int) {
        var random = SystemRandomNumberGenerator()
        let alphabet = Array(#"{}[]",:\u0dD8e+-. 19tfn"#.utf8) + [0xC3, 0x00]
        for _ in 0..<500 {
            let text = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            _ = try? JSONReader.value(of: text)
            try? JSONReader.forEachMember(of: text[...]) { _, _ in }
        }
    }
}
