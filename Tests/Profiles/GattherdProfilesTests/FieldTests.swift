import GattherdGATT
import GattherdModel
import GattherdProfiles
import Testing

struct FieldTests {
    @Test(
        arguments: [
            ("u8", "FE", "254"), ("i8", "FE", "-2"), ("u16le", "01 80", "32769"), ("u16be", "01 80", "384"),
            ("u16", "01 80", "32769"), ("i16le", "FE FF", "-2"), ("i16be", "FF FE", "-2"),
            ("u24", "01 00 80", "8388609"),
            ("i24", "0C FE FF", "-500"), ("i24be", "FF FE 0C", "-500"), ("u32le", "FF FF FF FF", "4294967295"),
            ("i32le", "FF FF FF FF", "-1"), ("u40", "01 00 00 00 01", "4294967297"),
            ("u48", "FF FF FF FF FF FF", "281474976710655"), ("u56be", "00 00 00 00 00 01 00", "256"),
            ("u64le", "01 00 00 00 00 00 00 00", "1"), ("u64le", "00 00 00 00 00 00 00 80", "9.223372036854776e+18"),
            ("i64be", "80 00 00 00 00 00 00 00", "-9223372036854775808"), ("f32le", "00 00 C0 3F", "1.5"),
            ("f32be", "3F C0 00 00", "1.5"), ("f64le", "00 00 00 00 00 00 F8 BF", "-1.5"),
            ("sfloat", "0F F0", "1.5"), ("float", "DA 03 00 FF", "98.6"), ("sfloat", "FF F7", "204.7"),
            ("bool", "01", "true"), ("bool", "00", "false"), ("utf8", "41 63 6D 65 00", "\"Acme\""),
            ("utf16", "41 00 E9 00 3D D8 00 DE 20 00 00 00 41", "\"Aé😀\""), ("bytes", "DE AD 00", "\"dead00\""),
            ("utf8", "", "\"\""), ("utf8", "41 00 42 00 20", "\"A\u{FFFD}B\""),
            ("utf16", "41 00 00 00 42 00", "\"A\u{FFFD}B\""),
        ]
    )
    func `every type decodes its octets`(type: String, hex: String, value: String) throws {
        #expect(try DeclarativeText.decode(hex, fields: "{metric: x, type: \(type)}") == ["x \(value)"])
    }

    @Test(
        arguments: [
            ("u16le, scale: 0.01", "39 30", "123.45"), ("u16le, scale: 0.01", "C4 09", "25"),
            ("i16le, scale: 1e-2", "9F FF", "-0.97"), ("u16le, scale: 1/1024", "00 03", "0.75"),
            ("u16le, scale: 1/1024", "01 03", "0.750977"), ("u8, scale: 0.1", "03", "0.3"),
            ("u8, scale: 0.5, offset: -40", "FF", "87.5"), ("u8, scale: 5/9, offset: -160/9", "D4", "100"),
            ("u8, scale: 10, offset: 3", "02", "23"), ("u8, offset: 0.5", "02", "2.5"), ("i8, scale: -1", "02", "-2"),
            ("u32le, scale: 1e-7", "80 96 98 00", "1"), ("sfloat, scale: 100000", "64 B0", "100"),
            ("sfloat, scale: 1e9", "03 80", "30"), ("float, scale: 5/9, offset: -160/9", "DA 03 00 FF", "37"),
            ("float, offset: 273.15", "6D 01 00 FF", "309.65"), ("f32le, scale: 0.5", "00 00 C0 3F", "0.75"),
            ("i64, scale: 3", "FF FF FF FF FF FF FF 7F", "2.7670116110564327e+19"),
        ]
    )
    func `scale and offset are exact, and the value is rounded once`(field: String, hex: String, value: String) throws {
        let decoded = try DeclarativeText.decode(hex, fields: "{metric: x, type: \(field)}")
        #expect(decoded == ["x \(value)"] || decoded == ["x \(value).0"])
    }

    @Test(
        arguments: [
            ("u16le, scale: 0.01", "FE 07", "20.46"), ("u16le, scale: 0.01", "01 08", "20.49"),
            ("f32", "CD CC A8 41", "21.1"), ("f32be", "41 A8 CC CD", "21.1"),
            ("f32, scale: 0.1", "CD CC A8 41", "2.11"),
            ("f32, offset: 0.2", "CD CC CC 3D", "0.3"), ("f64, offset: 0.2", "9A 99 99 99 99 99 B9 3F", "0.3"),
            ("f64", "9A 99 99 99 99 99 B9 3F", "0.1"), ("sfloat, scale: 1000/133.322387415", "A0 F0", "120.01"),
            ("sfloat, scale: 1000/133.322387415", "40 E6", "120.0099"), ("u8, scale: 1/3", "01", "0.333"),
            ("i8, scale: 1/3", "FF", "-0.333"), ("u8, scale: 1/3", "06", "2"),
            ("u8, scale: 5/9, offset: -160/9", "46", "21.111"), ("u16, scale: 1/65536", "39 30", "0.1883698"),
            ("u16, scale: 1/1024", "2D 03", "0.793945"), ("i16, scale: 1/256", "81 16", "22.50391"),
            ("u16, scale: 0.01*0.45359237", "AA 10", "19.35025"), ("u16, scale: 1/32", "01 00", "0.03125"),
            ("i32, scale: 1e-7", "C0 FF 4E 1F", "52.5270976"),
            ("u48, scale: 0.0001", "FF FF FF FF FF FF", "28147497671.0655"),
            ("u64, scale: 0.1", "FF FF FF FF FF FF FF 7F", "9.223372036854776e+17"),
            ("u8, base: 1.1", "0A", "2.59374246"),
            ("f32", "FF FF 7F 4B", "16777215"), ("f32", "01 00 00 00", "1e-45"), ("f32", "00 00 00 80", "-0"),
        ]
    )
    func `a value has no more digits than its raw number`(field: String, hex: String, value: String) throws {
        let decoded = try DeclarativeText.decode(hex, fields: "{metric: x, type: \(field)}")
        #expect(decoded == ["x \(value)"] || decoded == ["x \(value).0"])
    }

    @Test func `a sum of decimals has no floating-point noise`() throws {
        let decoded = try DeclarativeText.decode(
            "01 02",
            fields: "{metric: x, type: u8, scale: 0.1, repeat: rest}",
            "{metric: total, sum: x}",
            "{metric: middle, mean: x}"
        )
        #expect(decoded.suffix(2) == ["total 0.3", "middle 0.15"])
    }

    @Test(
        arguments: [
            ("sfloat", "FF 07", "not a number"), ("sfloat", "00 08", "not at this resolution"),
            ("sfloat", "FE 07", "+infinity"), ("sfloat", "02 08", "-infinity"), ("sfloat", "01 08", "reserved"),
            ("float", "FF FF 7F 00", "not a number"), ("float", "00 00 80 00", "not at this resolution"),
            ("float", "FE FF 7F 00", "+infinity"), ("float", "02 00 80 00", "-infinity"),
            ("float", "01 00 80 00", "reserved"), ("f32", "00 00 C0 7F", "not a number"),
            ("f32be", "FF 80 00 00", "-infinity"), ("f64", "00 00 00 00 00 00 F0 7F", "+infinity"),
            ("f64, scale: 1e6", "FF FF FF FF FF FF EF 7F", "too large"),
        ]
    )
    func `a special value is null and has a reason`(type: String, hex: String, reason: String) throws {
        let decoded = try DeclarativeText.decode(hex, fields: "{metric: x, type: \(type)}")
        #expect(decoded == ["x null", "x_reason \"\(reason)\""])
    }

    @Test(
        arguments: [
            ("u8, range: [0, 100]", "65 07", "101, outside 0 to 100"), ("bool", "02 07", "2, which is neither 0 nor 1"),
            ("i16le, scale: 0.01, range: [-273.15, 100]", "4C 95 07", "-273.16, outside -273.15 to 100"),
        ]
    )
    func `an impossible value does not discard its neighbours`(type: String, hex: String, reason: String) throws {
        let fields = ["{metric: x, type: \(type)}", "{metric: y, type: u8}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode(hex, by: profile) == ["x null", "x_reason \"\(reason)\"", "y 7"])
    }

    @Test func `a payload with only impossible values is rejected, labels count as known`() throws {
        let (x, y) = ("{metric: x, type: u8, range: [0, 100]}", "{metric: y, type: u8, unknown: 255}")
        #expect(try DeclarativeText.decode("65 FF", fields: x, y) == ["x is 101, outside 0 to 100"])
        #expect(try DeclarativeText.decode("64 FF", fields: x, y) == ["x 100", "y null"])
        let mode = "{metric: mode, type: u8, enum: {1: eco}}"
        let reason = "x_reason \"101, outside 0 to 100\""
        #expect(try DeclarativeText.decode("65 01", fields: x, mode) == ["x null", reason, "mode \"eco\""])
        #expect(try DeclarativeText.decode("65 02", fields: x, mode) == ["x is 101, outside 0 to 100"])
    }

    @Test func `the next value resets the reason to null`() throws {
        let fields = ["{metric: x, type: sfloat}", "{metric: y, type: u8}"]
        let decoder = try DeclarativeText.compile(DeclarativeText.profile(fields: fields)).makeDecoder()
        let reasons = try ["61 00 07", "FF 07 07", "61 00 07", "61 00 07"].map { hex in
            var samples: [Sample] = []
            let octets = try #require(Hexadecimal.octets(hex))
            try decoder.decode(octets.span, characteristic: 0, into: &samples)
            return samples.first { $0.metric == 1 }?.value
        }
        #expect(reasons == [nil, .text("not a number"), .null, nil])
    }

    @Test func `a rejected payload neither sets nor resets reasons`() throws {
        let fields = ["{metric: x, type: u8, range: [0, 100]}", "{metric: y, type: u8, unknown: 255}"]
        let decoder = try DeclarativeText.compile(DeclarativeText.profile(fields: fields)).makeDecoder()
        let decoded = try ["65 FF", "64 07", "65 07", "64", "64 07"].map { hex in
            var samples: [Sample] = []
            let octets = try #require(Hexadecimal.octets(hex))
            try? decoder.decode(octets.span, characteristic: 0, into: &samples)
            return samples
        }
        let x = { (value: SampleValue) in Sample(metric: 0, value: value) }
        let why = { (value: SampleValue) in Sample(metric: 1, value: value) }
        let y = Sample(metric: 2, value: .integer(7))
        let told = why(.text("101, outside 0 to 100"))
        #expect(decoded[1] == [x(.integer(100)), y])
        #expect(decoded[2] == [x(.null), told, y])
        #expect(decoded[4] == [x(.integer(100)), why(.null), y])
    }

    @Test func `a single metric has no reason, as an impossible value is a reject`() throws {
        let profile = try DeclarativeText.compile(
            DeclarativeText.profile(fields: ["{metric: x, type: u8, range: [0, 100]}"])
        )
        #expect(profile.characteristics[0].metrics.map(\.name) == ["x"])
    }

    @Test func `an integer with an integer scale stays an integer`() throws {
        #expect(try DeclarativeText.decode("05", fields: "{metric: x, type: u8, scale: 2}") == ["x 10"])
    }

    @Test(
        arguments: [
            ("u8, unknown: 255", "FF"), ("u8, unknown: [0xFE, 0xFF]", "FE"), ("i8, unknown: -128", "80"),
            ("i16le, unknown: 0x8000", "00 80"), ("i16le, unknown: -32768, scale: 0.01", "00 80"),
            ("u64, unknown: 0xFFFFFFFFFFFFFFFF", "FF FF FF FF FF FF FF FF"), ("sfloat, unknown: 0x0001", "01 00"),
            ("f32be, unknown: 0x3FC00000", "3F C0 00 00"), ("u8, unknown: 255, range: [0, 100]", "FF"),
            ("u8, enum: {0: off}", "01"), ("u8, enum: {0: off, 1: on}, unknown: 1", "01"),
        ]
    )
    func `unknown raw values are null`(field: String, hex: String) throws {
        #expect(try DeclarativeText.decode(hex, fields: "{metric: x, type: \(field)}") == ["x null"])
    }

    @Test(
        arguments: [
            ("u8, range: [0, 100]", "65", "x is 101, outside 0 to 100"),
            ("i16le, scale: 0.01, range: [-273.15, 100]", "4C 95", "x is -273.16, outside -273.15 to 100"),
            ("f32, range: [0, 1]", "00 00 C0 3F", "x is 1.5, outside 0 to 1"),
            ("sfloat, range: [0, 1]", "0F F0", "x is 1.5, outside 0 to 1"),
            ("u64, range: [0, 1]", "FF FF FF FF FF FF FF FF", "x is 1.8446744073709552e+19, outside 0 to 1"),
            ("bool", "02", "x is 2, which is neither 0 nor 1"),
            ("u16le", "01", "truncated: a field at offset 0 needs 2 bytes, 1 left"),
            ("utf8, length: 4", "41", "truncated: a field at offset 0 needs 4 bytes, 1 left"),
        ]
    )
    func `an impossible value is a reject with the allowed range`(field: String, hex: String, reason: String) throws {
        #expect(try DeclarativeText.decode(hex, fields: "{metric: x, type: \(field)}") == [reason])
    }

    @Test func `labels replace numbers, including negative ones`() throws {
        let field = "{metric: x, type: i8, enum: {-1: below, 0: even, 0x01: above}}"
        #expect(try DeclarativeText.decode("FF", fields: field) == ["x \"below\""])
        #expect(try DeclarativeText.decode("01", fields: field) == ["x \"above\""])
    }

    @Test(
        arguments: [
            ("f.0", "01 07", true), ("f.0", "02 07", false), ("!f.0", "02 07", true), ("not f.0", "01 07", false),
            ("f.0 & f.1", "03 07", true), ("f.0 and f.1", "01 07", false), ("f.0 && !f.1", "01 07", true),
            ("f.0 | f.1", "02 07", true), ("f.0 or f.1", "04 07", false), ("f.0 || f.1 & f.2", "01 07", true),
            ("(f.0 | f.1) & f.2", "01 07", false), ("f == 3", "03 07", true), ("f != 3", "03 07", false),
            ("f > 0x10", "11 07", true), ("f >= 17", "10 07", false), ("f < 2", "01 07", true),
            ("f <= 2", "03 07", false),
            ("f[3:2] == 2", "08 07", true), ("f[7:4]", "10 07", true), ("f[7:4]", "0F 07", false),
            ("!(f == 3)", "03 07", false),
            ("!!f.0", "01 07", true), ("f", "00 07", false), ("1", "00 07", true), ("(f.0)==(f.1)", "03 07", true),
        ]
    )
    func `conditions select fields`(condition: String, hex: String, holds: Bool) throws {
        let decoded = try DeclarativeText.decode(
            hex,
            fields: "{flags: f, type: u8}",
            "{metric: x, type: u8, when: \"\(condition)\"}"
        )
        #expect(decoded == (holds ? ["x 7"] : []))
    }

    @Test func `an absent field counts as 0 in conditions`() throws {
        let fields = [
            "{flags: f, type: u8}", "{metric: count, type: i8, when: f.0}",
            "{metric: x, type: u8, when: \"count < 0 | f == 0\"}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("01 FF 07", by: profile) == ["count -1", "x 7"])
        #expect(try DeclarativeText.decode("01 01 07", by: profile) == ["count 1"])
        #expect(try DeclarativeText.decode("00 07", by: profile) == ["x 7"])
        #expect(try DeclarativeText.decode("02 07", by: profile) == [])
    }

    @Test func `registers are reset between payloads`() throws {
        let fields = ["{flags: f, type: u8}", "{flags: g, type: u8, when: f.0}", "{metric: x, type: u8, when: g.0}"]
        let decoder = try DeclarativeText.compile(DeclarativeText.profile(fields: fields)).makeDecoder()
        var samples: [Sample] = []
        try decoder.decode([1, 1, 7].span, characteristic: 0, into: &samples)
        try decoder.decode([0, 7].span, characteristic: 0, into: &samples)
        #expect(samples == [Sample(metric: 0, value: .integer(7))])
    }

    @Test func `bits of earlier fields are values without octets`() throws {
        let fields = [
            "{flags: f, type: u16be}", "{metric: flag, from: f.0}", "{metric: level, from: \"f[6:4]\", scale: 0.5}",
            "{metric: mode, from: \"f[9:8]\", enum: {1: eco, 2: boost}}", "{metric: all, from: f}",
            "{metric: power, from: f.15, enum: {0: off, 1: on}}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(
            try DeclarativeText.decode("82 71", by: profile)
                == ["flag true", "level 3.5", "mode \"boost\"", "all 33393", "power \"on\""]
        )
        #expect(profile.characteristics[0].metrics.map(\.kind) == [.state, .gauge, .state, .gauge, .state])
    }

    @Test(
        arguments: [
            ("{metric: x, type: u8, repeat: rest}", "05 06 07", ["x 5", "x 6", "x 7"]),
            ("{metric: x, type: u8, repeat: rest}", "", []),
            ("{metric: x, type: u8, repeat: 2}", "05 06 07", ["x 5", "x 6"]),
            (
                "{metric: x, type: u16le, repeat: rest}", "05 06 07",
                ["truncated: a field at offset 2 needs 2 bytes, 1 left"]
            ),
            ("{metric: x, type: u8, repeat: 2}", "05", ["truncated: a field at offset 1 needs 1 byte, 0 left"]),
            ("{metric: x, type: utf8, length: 2, repeat: rest}", "41 42 43 44", ["x \"AB\"", "x \"CD\""]),
        ] as [(String, String, [String])]
    )
    func `a field can be repeated`(field: String, hex: String, decoded: [String]) throws {
        #expect(try DeclarativeText.decode(hex, fields: field) == decoded)
    }

    @Test func `an earlier field can give the number of repetitions`() throws {
        let fields = ["{flags: n, type: i8}", "{metric: x, type: u8, repeat: n}", "{metric: y, type: u8}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("02 05 06 07", by: profile) == ["x 5", "x 6", "y 7"])
        #expect(try DeclarativeText.decode("80 07", by: profile) == ["y 7"])
        #expect(
            try DeclarativeText.decode("7F 07", by: profile) == ["truncated: a field at offset 2 needs 1 byte, 0 left"]
        )
    }

    /// A group of `count` fields.
    private static func group(_ count: Int) -> String {
        let skips = Array(repeating: "{skip: 1}", count: count - 1).joined(separator: ", ")
        return "{when: left > 0, fields: [{metric: x, type: u8, when: left == 1}, \(skips)]}"
    }

    @Test func `a group with more fields than the maximum is refused`() throws {
        #expect(try DeclarativeText.errors(DeclarativeText.profile(fields: [Self.group(256)])) == [])
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [Self.group(257)]))
        #expect(errors.count == 1 && errors[0].hasPrefix("9:"), "\(errors)")
        #expect(errors.allSatisfy { $0.hasSuffix("a list of fields has at most 256") })
    }

    @Test func `a stream with more fields than the maximum is refused`() throws {
        let fields = ["{metric: x, type: u8}"] + Array(repeating: "{skip: 1}", count: 255)
        #expect(try DeclarativeText.errors(DeclarativeText.profile(fields: fields)) == [])
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields + ["{skip: 1}", "{skip: 1}"]))
        #expect(errors == ["265:9: a list of fields has at most 256"])
    }

    @Test func `groups have their fields beside the maximum of the stream`() throws {
        let small = ["{metric: y, type: u8}"] + Array(repeating: Self.group(4), count: 75)
        #expect(try DeclarativeText.errors(DeclarativeText.profile(fields: small)) == [])
        let skips = Array(repeating: "{skip: 1}", count: 200)
        #expect(try DeclarativeText.errors(DeclarativeText.profile(fields: skips + [Self.group(100)])) == [])
    }

    @Test func `octets can be skipped, and those after the last field are ignored`() throws {
        #expect(try DeclarativeText.decode("01 02 03 04", fields: "{skip: 2}", "{metric: x, type: u8}") == ["x 3"])
        #expect(try DeclarativeText.decode("01", fields: "{skip: 2}", "{metric: x, type: u8}").count == 1)
    }
}
