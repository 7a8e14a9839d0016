import GattherdYAML
import TestKit
import Testing

@Suite struct YAMLTests {
    @Test func `scalars, lists and mappings keep order and positions`() throws {
        let root = try #require(
            try YAML.parse(
                """
                # a comment
                name: "strap"
                rates: [1, '2']
                deep:
                  - ä: 3
                """
            )
        )
        #expect(root.members?.map(\.name) == ["name", "rates", "deep"])
        #expect(root.position == YAMLPosition(line: 2, column: 1))
        #expect(root["name"]?.content == .scalar("strap", isPlain: false))
        #expect(root["name"]?.position == YAMLPosition(line: 2, column: 7))
        #expect(root["name"]?.end == YAMLPosition(line: 2, column: 14))
        let rates = try #require(root["rates"])
        #expect(rates.elements?.map(\.content) == [.scalar("1", isPlain: true), .scalar("2", isPlain: false)])
        #expect(rates.end == YAMLPosition(line: 3, column: 16))
        let three = try #require(root["deep"]?.elements?.first?["ä"])
        #expect(three.position == YAMLPosition(line: 5, column: 8))
        #expect(root.end == YAMLPosition(line: 5, column: 9))
    }

    @Test(arguments: ["", "\u{FEFF}", "# only a comment\n", "---\n", "--- ~\n"])
    func `a text without content has no document`(text: String) throws {
        #expect(try YAML.parse(text) == nil)
    }

    @Test(arguments: [("~", true), ("", true), ("null", true), ("'~'", false), ("''", false), ("0", false)])
    func `only an unquoted null is null`(value: String, isNull: Bool) throws {
        #expect(try YAML.parse("a: \(value)")?["a"]?.isNull == isNull)
    }

    @Test func `a block scalar is not plain and keeps its line breaks`() throws {
        #expect(try YAML.parse("a: |\n  b\n  c\n")?["a"]?.content == .scalar("b\nc\n", isPlain: false))
    }

    @Test func `an alias has the content of its anchor and its own position`() throws {
        let root = try #require(try YAML.parse("a: &x {b: 1}\nc: *x"))
        #expect(root["c"]?.content == root["a"]?.content)
        #expect(root["c"]?.position == YAMLPosition(line: 2, column: 4))
    }

    static let mistakes: [(text: String, position: YAMLPosition, problem: String)] = [
        ("a: 1\nb: 2\na: 3", .init(line: 3, column: 1), "the key 'a' is already in line 1"),
        ("a: {b: 1, \"b\": 2}", .init(line: 1, column: 11), "the key 'b' is already in line 1"),
        ("a:\n\tb: 1", .init(line: 2, column: 1), "a tab cannot stand here; indent with spaces"),
        ("a: 1\n--- \nb: 2", .init(line: 2, column: 1), "a second document begins here; a file holds one"),
        ("a: *x", .init(line: 1, column: 4), "no value before this one is named '&x'"),
        ("a: &x [*x]", .init(line: 1, column: 8), "no value before this one is named '&x'"),
        ("a: !!str 1", .init(line: 1, column: 4), "tags ('!…') have no meaning here; leave the tag out"),
        ("a: &x {b: 1}\nc:\n  <<: *x", .init(line: 3, column: 3), Self.merging),
        ("a: {from: f[3:0]}", .init(line: 1, column: 12), Self.unquoted),
        ("? [a]\n: 1", .init(line: 1, column: 3), "a key must be a text, but this is a list"),
        ("a: [1", .init(line: 2, column: 1), Self.unclosed),
        (
            "a: 1\n b: 2", .init(line: 2, column: 3),
            "a ':' cannot stand here; correct the indentation, or put the text into quotes"
        ),
        ("ä: \u{1}", .init(line: 1, column: 4), "control characters are not allowed"),
    ]

    private static let merging = "merge keys ('<<') have no meaning here; write the keys out"
    private static let unquoted =
        "a value, a ',' or a closing bracket is missing here; put a text with '[' or '{' into quotes"
    private static let unclosed =
        "the '[' or '{' of line 1 is not closed"

    @Test(arguments: mistakes)
    func `an error has its position`(text: String, position: YAMLPosition, problem: String) {
        let error = #expect(throws: YAMLError.self) { try YAML.parse(text) }
        #expect(error?.position == position)
        #expect(error?.problem == problem)
    }

    @Test(arguments: [
        ([0x61, 0x3A, 0x0A, 0xC3, 0xA4, 0x20, 0xFF], YAMLPosition(line: 2, column: 3), "not UTF-8"),
        ([0x61, 0xC3], YAMLPosition(line: 1, column: 2), "not UTF-8"),
        ([0xFF, 0xFE, 0x61, 0x00], YAMLPosition(line: 1, column: 1), "UTF-16"),
    ])
    func `bytes that are not UTF-8 have their position`(octets: [UInt8], place: YAMLPosition, word: String) {
        let error = #expect(throws: YAMLError.self) { try YAML.parse(octets) }
        #expect(error?.position == place)
        #expect(error?.problem.contains(word) == true)
    }

    @Test func `a syntax error names the line where the construct begins`() {
        let error = #expect(throws: YAMLError.self) { try YAML.parse("a: 1\nb:\n  c: \"x\n\nd: 1") }
        #expect(error?.problem == "the quote of line 3 is not closed")
    }

    @Test func `nesting is bounded, also through aliases`() throws {
        let limit = YAML.maximumDepth
        func nested(_ depth: Int, _ core: String = "") -> String {
            String(repeating: "[", count: depth) + core + String(repeating: "]", count: depth)
        }
        #expect(try YAML.parse(nested(limit)) != nil)
        #expect(throws: YAMLError.self) { try YAML.parse(nested(limit + 1)) }
        #expect(throws: YAMLError.self) { try YAML.parse(nested(100_000)) }
        #expect(throws: YAMLError.self) { try YAML.parse("a: &x \(nested(40))\nb: \(nested(40, "*x"))") }
    }

    @Test func `multiplying aliases are refused`() {
        let laughs = (1..<30).map { "l\($0): &l\($0) [*l\($0 - 1), *l\($0 - 1), *l\($0 - 1)]" }
        let error = #expect(throws: YAMLError.self) {
            try YAML.parse("l0: &l0 [lol]\n" + laughs.joined(separator: "\n"))
        }
        #expect(error?.problem.contains("aliases expanded") == true)
    }

    @Test(.timeLimit(.minutes(3)))
    func `any bytes give a tree or an error`() {
        var random = SplitMix(state: 7)
        let alphabet = Array("ab:-[]{},&*!|>'\"%@?#\\ \n\t~0\u{FEFF}ä".utf8) + [0x00, 0x80, 0xFF]
        for _ in 0..<20_000 {
            let octets = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                alphabet[Int.random(in: alphabet.indices, using: &random)]
            }
            _ = try? YAML.parse(octets)
        }
    }
}
