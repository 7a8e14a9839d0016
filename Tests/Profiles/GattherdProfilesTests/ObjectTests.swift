import GattherdGATT
import GattherdModel
import GattherdProfiles
import Testing

/// Objects by their number, and ignored advertisements.
struct ObjectTests {
    private static let sized = [
        "{objects: {id: u16be, size: u8}, kinds: {0x0102: {metric: x, type: u8}, 3: [{flags: n, type: u8}, "
            + "{metric: y, type: u8, when: n.0}], 0xFFFF: {metric: t, type: utf8, length: size}}}"
    ]
    private static let unsized = [
        "{objects: {id: u8}, kinds: {1: {metric: x, type: u8}, 2: {metric: r, type: bytes}}}"
    ]

    private static func decode(_ hex: String, _ fields: [String]) throws -> [String] {
        try DeclarativeText.decode(hex, by: DeclarativeText.compile(DeclarativeText.profile(fields: fields)))
    }

    @Test func `each object is decoded by its kind`() throws {
        #expect(try Self.decode("0102 01 07 0003 02 01 08", Self.sized) == ["x 7", "y 8"])
        #expect(try Self.decode("FFFF 02 4869 0102 01 07", Self.sized) == ["t \"Hi\"", "x 7"])
        #expect(try Self.decode("01 07 01 08", Self.unsized) == ["x 7", "x_2 8"])
        #expect(try Self.decode("", Self.sized) == [])
    }

    @Test func `unknown kinds and unread bytes of an object are skipped`() throws {
        #expect(try Self.decode("0909 03 010203 0102 03 070000 0102 01 08", Self.sized) == ["x 7", "x_2 8"])
        #expect(try Self.decode("01 07 09 01 08", Self.unsized) == ["x 7"])
        #expect(try Self.decode("0909 00", Self.sized) == [])
    }

    @Test func `zeros that are too short for another object are padding`() throws {
        #expect(try Self.decode("0102 01 07 00", Self.sized) == ["x 7"])
        #expect(try Self.decode("0102 01 07 0000", Self.sized) == ["x 7"])
        #expect(try Self.decode("0102 01 07 0001", Self.sized)[0].hasPrefix("truncated"))
        #expect(try Self.decode("01 07 00", Self.unsized) == ["x 7"])
    }

    @Test func `flags of an earlier object do not count`() throws {
        let fields = [
            "{objects: {id: u8}, kinds: {1: {flags: n, type: u8}, 2: {metric: y, type: u8, when: n}}}"
        ]
        #expect(try Self.decode("01 01 02 08", fields) == ["y 8"])
        #expect(try Self.decode("0003 01 00 0003 02 01 08", Self.sized) == ["y 8"])
        #expect(try Self.decode("0003 02 01 08 0003 01 00", Self.sized) == ["y 8"])
    }

    @Test func `an object that is too long or truncated is rejected`() throws {
        #expect(try Self.decode("0102 00", Self.sized)[0].hasPrefix("truncated"))
        #expect(
            try Self.decode("0102 00 07", Self.sized)[0] == "the object at offset 3 is longer than its size of 0 bytes"
        )
        #expect(try Self.decode("0909 05 01", Self.sized)[0].hasPrefix("truncated"))
        #expect(try Self.decode("0102", Self.sized)[0].hasPrefix("truncated"))
        #expect(try Self.decode("01", Self.unsized)[0].hasPrefix("truncated"))
    }

    @Test func `a payload of the highest number of objects ends`() throws {
        let hex = String(repeating: "09", count: 512)
        #expect(try Self.decode(hex, Self.unsized) == [])
    }

    @Test func `more values of a metric than have numbers reject the payload with the metric and a remedy`() throws {
        let (eight, nine) = (String(repeating: "0107", count: 8), String(repeating: "0107", count: 9))
        #expect(try Self.decode(eight, Self.unsized).last == "x_8 7")
        let reason = try #require(try Self.decode(nine, Self.unsized).first)
        let words = "it has more than 8 values of 'x'; numbered metrics end at 'x_8', so the profile needs a list"
        #expect(reason == words)
    }

    @Test func `random payloads are decoded or rejected`() throws {
        var random = SystemRandomNumberGenerator()
        for fields in [Self.sized, Self.unsized] {
            let decoder = try DeclarativeText.compile(DeclarativeText.profile(fields: fields)).makeDecoder()
            for _ in 0..<5000 {
                let octets = (0..<Int.random(in: 0...30)).map { _ in UInt8.random(in: 0...4, using: &random) }
                decoder.tryDecode(octets)
            }
        }
    }

    @Test func `an ignored advertisement is neither a reading nor a reject`() throws {
        let text = """
            contract: 1
            profile: thing
            advertisement:
              - service_data: 181a
                stream: thing
                fields:
                  - {flags: f, type: u8}
                  - {ignore: "!f.6"}
                  - {metric: x, type: u8}
            """
        let profile = try DeclarativeText.compile(text)
        #expect(try DeclarativeText.decode("00", by: profile) == [])
        #expect(try DeclarativeText.decode("40 05", by: profile) == ["x 5"])
        #expect(try DeclarativeText.decode("40", by: profile)[0].hasPrefix("truncated"))
    }

    @Test func `an advertisement without a value is neither a reading nor a reject`() throws {
        let text = """
            contract: 1
            profile: thing
            advertisement:
              - service_data: 181a
                stream: thing
                fields:
                  - {flags: kind, type: u8}
                  - {metric: x, type: u8, when: kind == 1}
                  - {flags: n, type: u8, when: kind == 2}
                  - {metric: growth, increase: n, when: kind == 2}
            """
        let profile = try DeclarativeText.compile(text)
        #expect(try DeclarativeText.decode("01 05", by: profile) == ["x 5"])
        #expect(try DeclarativeText.decode("03", by: profile) == [])
        let explanation = try #require(ProfileTools.explain([[3]], characteristic: 0, of: profile))
        #expect(explanation.rejection == nil && !explanation.isRepetition)
        let second = try ProfileTools.decode([[2, 10], [2, 12]], characteristic: 0, of: profile)
        #expect(second.map(\.value) == [.integer(2)])
    }

    /// A profile of advertisements with a counter and these fields after it.
    private static func counted(_ fields: String...) -> String {
        """
        contract: 1
        profile: thing
        advertisement:
          - service_data: 181a
            stream: thing
            counter: n
            fields: [{metric: n, type: u8}, \(fields.joined(separator: ", "))]
        """
    }

    @Test func `a counter alone is no reading of a stream with other metrics`() throws {
        let text = Self.counted("{flags: kind, type: u8}", "{metric: x, type: u8, when: kind == 1}")
        let profile = try DeclarativeText.compile(text)
        #expect(try DeclarativeText.decode("05 03", by: profile) == [])
        #expect(try DeclarativeText.decode("06 01 07", by: profile) == ["n 6", "x 7"])
        let explanation = try #require(ProfileTools.explain([[5, 3]], characteristic: 0, of: profile))
        #expect(explanation.rejection == nil && !explanation.isRepetition)
    }

    @Test func `a counter is the reading of a stream without other metrics`() throws {
        let profile = try DeclarativeText.compile(Self.counted("{skip: 1}"))
        #expect(try DeclarativeText.decode("05 03", by: profile) == ["n 5"])
        #expect(try ProfileTools.decode([[5, 3], [5, 3]], characteristic: 0, of: profile).isEmpty)
    }

    @Test func `a wrong length or checksum after an ignored advertisement is a reject`() throws {
        let text = """
            contract: 1
            profile: thing
            advertisement:
              - service_data: 181a
                stream: thing
                length: [2, 3]
                check: {kind: sum8}
                fields:
                  - {flags: f, type: u8}
                  - {ignore: "!f.6"}
                  - {metric: x, type: u8}
            """
        let profile = try DeclarativeText.compile(text)
        let decoder = profile.makeDecoder()
        for (rejected, reason) in [([0x40, 5, 0x45, 0], "wrong length"), ([0x40, 5, 0x46], "its checksum is")]
            as [([UInt8], String)]
        {
            var samples: [Sample] = []
            try decoder.decode([0, 0].span, characteristic: 0, into: &samples)
            #expect(samples.isEmpty)
            let error = #expect(throws: PayloadError.self) {
                try decoder.decode(rejected.span, characteristic: 0, into: &samples)
            }
            #expect(error?.description.hasPrefix(reason) == true)
            let explanation = ProfileTools.explain([[0, 0], rejected], characteristic: 0, of: profile)
            #expect(explanation?.rejection?.description.hasPrefix(reason) == true)
        }
    }

    @Test(
        arguments: [
            ("{objects: {id: u8}}", "9:10: 'objects' needs 'kinds'"),
            ("{objects: {}, kinds: {1: {metric: x, type: u8}}}", "9:19: 'objects' needs 'id': an unsigned type"),
            ("{objects: {id: i8}, kinds: {1: {metric: x, type: u8}}}", "9:24: 'i8' is invalid; expected an unsigned"),
            ("{objects: {id: u40}, kinds: {1: {metric: x, type: u8}}}", "9:24: 'u40' is invalid; expected an unsigned"),
            (
                "{objects: {id: u8}, kinds: {256: {metric: x, type: u8}}}",
                "9:37: '256' is invalid; expected an integer from 0 to 255"
            ),
            (
                "{objects: {id: u8}, kinds: {1: {metric: x, type: u8}, 0x01: {metric: y, type: u8}}}",
                "9:63: there is a kind 0x01 already"
            ),
            ("{objects: {id: u8}, kinds: []}", "9:29: 'kinds' is a mapping of 1 to 256 numbers to fields"),
            (
                "{objects: {id: u8}, kinds: {1: {repeat: 2, fields: [{metric: x, type: u8}]}}}",
                "9:52: groups cannot be nested"
            ),
            ("{objects: {id: u8}, kinds: {1: {metric: x, type: u8, repeat: 2}}}", "9:62: a list cannot be numbered"),
            ("{ignore: x}", "9:10: 'ignore' is for advertisements"),
        ]
    )
    func `errors in objects have a position`(field: String, error: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }
}
