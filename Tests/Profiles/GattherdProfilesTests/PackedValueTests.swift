import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// Values packed into bits, decimal digits and obscured bytes.
struct PackedValueTests {
    private static let lists = [
        "{flags: width, type: u8}", "{flags: count, type: u8}",
        "{metric: x, type: i16le, repeat: 1, scale: 0.1, unknown: 0x8000}", "{metric: y, type: u8, repeat: 1}",
    ]

    /// Returns the lists of a payload with differences, or the reason of the reject.
    private func decode(_ hex: String, _ deltas: String) throws -> [String] {
        let text = DeclarativeText.profile(fields: Self.lists + [deltas])
        return try DeclarativeText.decode(hex, by: try DeclarativeText.compile(text))
    }

    private static let both = "{deltas: [x, y], bits: width, repeat: count}"

    @Test(arguments: [
        // 4, 8, 12 and 16 bits: +1, −1; then −8, +7 or the extremes of the width.
        ("04 02 0A00 05 F1 78", ["x 1.0", "y 5", "x 1.1", "y 4", "x 0.3", "y 11"]),
        ("08 02 0A00 05 01FF 807F", ["x 1.0", "y 5", "x 1.1", "y 4", "x -11.7", "y 131"]),
        ("0C 02 0A00 05 01F0FF 00F87F", ["x 1.0", "y 5", "x 1.1", "y 4", "x -203.7", "y 2051"]),
        ("10 02 0A00 05 0100FFFF 0080FF7F", ["x 1.0", "y 5", "x 1.1", "y 4", "x -3275.7", "y 32771"]),
        ("20 01 0A00 05 01000000 FFFFFFFF", ["x 1.0", "y 5", "x 1.1", "y 4"]),
        ("01 02 0A00 05 0E", ["x 1.0", "y 5", "x 1.0", "y 4", "x 0.9", "y 3"]),
    ])
    func `differences are added to the value before`(hex: String, samples: [String]) throws {
        #expect(try decode(hex, Self.both) == samples)
    }

    @Test(arguments: [
        ("00 FF 0A00 05", ["x 1.0", "y 5"]), ("08 00 0A00 05", ["x 1.0", "y 5"]),
        ("21 01 0A00 05 0000000000000000", ["deltas of 33 bits at offset 5; 0 to 32 are possible"]),
        ("08 02 0A00 05 01FF 80", ["truncated: a field at offset 5 needs 4 bytes, 3 left"]),
        ("20 FF 0A00 05 00", ["truncated: a field at offset 5 needs 2040 bytes, 1 left"]),
    ])
    func `a list may be empty; too wide or missing differences are rejected`(hex: String, samples: [String]) throws {
        #expect(try decode(hex, Self.both) == samples)
    }

    @Test func `differences continue until the payload ends`() throws {
        let samples = try decode("00 00 0A00 05 01 FF 01", "{deltas: x, bits: 8, repeat: rest}")
        #expect(samples == ["x 1.0", "y 5", "x 1.1", "x 1.0", "x 1.1"])
        #expect(try decode("00 00 0A00 05 FF", "{deltas: x, bits: 12, repeat: rest}") == ["x 1.0", "y 5"])
    }

    @Test func `a sum beyond the first value's type and an unknown pattern do no harm`() throws {
        #expect(
            try decode("20 01 FF7F 05 FFFFFF7F 00000080", Self.both).prefix(3) == ["x 3276.7", "y 5", "x 214751641.4"]
        )
        #expect(try decode("08 01 0080 05 01 00", Self.both) == ["x null", "y 5", "x -3276.7", "y 5"])
        #expect(try decode("08 01 0180 05 FF 00", Self.both) == ["x -3276.7", "y 5", "x null", "y 5"])
    }

    @Test(arguments: [
        ("{deltas: z, bits: 8, repeat: 1}", "13:18: no earlier list of integers is called 'z'"),
        ("{deltas: width, bits: 8, repeat: 1}", "no earlier list of integers is called 'width'"),
        ("{deltas: x, repeat: 1}", "deltas need 'bits'"), ("{deltas: x, bits: 33, repeat: 1}", "'33' is invalid"),
        ("{deltas: x, bits: 8}", "deltas need 'repeat'"), ("{deltas: [], bits: 8, repeat: 1}", "names 1 to 16"),
        ("{deltas: x, bits: 8, repeat: 1, type: u8}", "type"),
        ("{deltas: x, metric: v, bits: 8, repeat: 1}", "a field has exactly one of 'metric', 'flags'"),
    ])
    func `mistakes in deltas are reported`(deltas: String, error: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: Self.lists + [deltas]))
        #expect(errors.contains { $0.contains(error) }, "\(errors)")
    }

    @Test func `an explanation has a row for each list`() throws {
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: Self.lists + [Self.both]))
        let payload = try #require(Hexadecimal.octets("04 02 0A00 05 F1 78"))
        let explanation = try #require(ProfileTools.explain([payload], characteristic: 0, of: profile))
        let rows = explanation.rows.filter { $0.source == "deltas of width bits" }
        #expect(rows.map(\.field) == ["x", "y", "x", "y"])
        #expect(rows.map(\.value) == ["1.1", "4", "0.3", "11"])
        #expect(rows.map(\.octets) == [5..<7, 7..<7, 7..<7, 7..<7])
        #expect(explanation.leftOver.isEmpty)
    }

    @Test(.timeLimit(.minutes(1))) func `random differences never trap`() throws {
        let fields = "{flags: w, type: u8}, {flags: n, type: u32le}, {deltas: [x, y], bits: w, repeat: n}"
        let group = "{repeat: rest, fields: [\(fields)]}"
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: Self.lists + [group]))
        let decoder = profile.makeDecoder()
        var generator = SplitMix(state: 5)
        for _ in 0..<5000 {
            var samples: [Sample] = []
            try? decoder.decode(generator.payload(atMost: 40).span, characteristic: 0, into: &samples)
        }
    }

    // MARK: - Decimal digits

    @Test(arguments: [
        ("1234", "bcd(v)", 1234), ("0000", "bcd(v)", 0), ("9999", "bcd(v)", 9999), ("12A4", "bcd(v)", -1),
        ("F000", "bcd(v)", -1), ("8123", "bcd(v[14:0]) * (1 - 2*v.15)", -123),
        ("1234", "100*bcd(v[7:0]) + bcd(v[15:8])", 3412),
        ("1234", "bcd(v) == 1234", 1), ("1234", "bcd(0 - v)", -1),
    ])
    func `digits become a number`(hex: String, expression: String, number: Int) throws {
        let fields = ["{flags: v, type: u16be}", "{metric: x, from: \"0 + (\(expression))\"}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode(hex, by: profile) == ["x \(number)"])
    }

    @Test func `digits have their place in formulas, and a field may have their name`() throws {
        let formula = ["{flags: v, type: u16be}", "{metric: x, formula: bcd(v) / 8}"]
        #expect(try DeclarativeText.decode("1234", fields: formula[0], formula[1]) == ["x 154.25"])
        #expect(
            try DeclarativeText.decode("12", fields: "{flags: bcd, type: u8}", "{metric: x, from: bcd + 1}") == ["x 19"]
        )
    }

    @Test(arguments: [("bcd v", "expected '(' after 'bcd'"), ("bcd(v", "expected ')'"), ("bcd(v, v)", "expected ')'")])
    func `mistakes in digits are reported`(expression: String, error: String) throws {
        let fields = ["{flags: v, type: u16be}", "{metric: x, from: \"\(expression)\"}"]
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields))
        #expect(errors.contains { $0.contains(error) }, "\(errors)")
    }

    // MARK: - Exclusive or

    @Test(arguments: [
        ("00 A1A2", "key: A0", ["n 0", "x 1", "y 2"]), ("00 A1B2", "key: A0 B0", ["n 0", "x 1", "y 2"]),
        ("A0 A1A2", "key: 0..1", ["n 160", "x 1", "y 2"]), ("00 A102", "key: A0, until: 2", ["n 0", "x 1"]),
        ("00 0102", "key: 5..6", ["truncated: a field at offset 0 needs 4 bytes, 3 left"]),
        ("00 0102", "key: 2..-1", ["truncated: a field at offset 0 needs 4 bytes, 3 left"]),
    ])
    func `bytes are combined with a repeated key`(hex: String, key: String, samples: [String]) throws {
        let fields = ["{metric: n, type: u8}", "{decrypt: {cipher: xor, \(key)}}", "{metric: x, type: u8}"]
        let last = "{metric: y, type: u8, when: left > 0}"
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields + [last]))
        #expect(try DeclarativeText.decode(hex, by: profile) == samples)
    }

    @Test(arguments: [
        ("cipher: xor", "xor needs 'key'"), ("cipher: xor, key: device", "xor needs 'key'"),
        ("cipher: xor, key: A0, nonce: B0", "has no meaning for xor"),
        ("cipher: xor, key: A0, tag: -4..", "is for aes-ccm"),
    ])
    func `mistakes in an exclusive or are reported`(decryption: String, error: String) throws {
        let fields = ["{decrypt: {\(decryption)}}", "{metric: x, type: u8}"]
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields))
        #expect(errors.contains { $0.contains(error) }, "\(errors)")
    }
}
