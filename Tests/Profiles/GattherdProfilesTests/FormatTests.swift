import GattherdGATT
import GattherdModel
import GattherdProfiles
import Testing

/// Keys of fields other than type and scale.
struct FormatTests {
    private func decode(_ hex: String, _ fields: String..., more: String = "") throws -> [String] {
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields, more: more))
        return try DeclarativeText.decode(hex, by: profile)
    }

    @Test(
        arguments: [
            ("datetime", "EA 07 03 0E 0F 09 1A", "\"2026-03-14T15:09:26\""),
            ("datetime", "2E 06 01 01 00 00 00", "\"1582-01-01T00:00:00\""),
            ("datetime", "0F 27 0C 1F 17 3B 3B", "\"9999-12-31T23:59:59\""),
            ("datetime", "00 00 03 0E 0F 09 1A", "null"), ("datetime", "EA 07 00 0E 0F 09 1A", "null"),
            ("datetime", "EA 07 03 00 0F 09 1A", "null"), ("datetime", "EA 07 0D 0E 0F 09 1A", "null"),
            ("datetime", "EA 07 02 1D 0F 09 1A", "null"),
            ("datetime", "E8 07 02 1D 17 3B 3B", "\"2024-02-29T23:59:59\""),
            ("datetime", "6C 07 02 1D 00 00 00", "null"),
            ("datetime", "D0 07 02 1D 00 00 00", "\"2000-02-29T00:00:00\""),
            ("datetime", "EA 07 03 0E 18 09 1A", "null"), ("datetime", "EA 07 03 0E 0F 3C 1A", "null"),
            ("datetime", "EA 07 03 0E 0F 09 3C", "null"), ("datetime", "FF FF FF FF FF FF FF", "null"),
            ("date", "BC 07 05 11", "\"1980-05-17\""), ("date", "00 00 00 00", "null"),
        ]
    )
    func `dates are texts, unknown ones are null`(type: String, hex: String, value: String) throws {
        #expect(try decode(hex, "{metric: x, type: \(type)}") == ["x \(value)"])
    }

    @Test(
        arguments: [
            ("uuid16", "0D 18", "180d"), ("uuid32", "0D 18 00 00", "180d"),
            ("uuid32", "01 00 01 00", "00010001-0000-1000-8000-00805f9b34fb"),
            ("uuid128", "59 1F 97 06 6E 06 3A B6 17 47 9F 99 E6 BF 4B 7A", "7a4bbfe6-999f-4717-b63a-066e06971f59"),
        ]
    )
    func `UUIDs are decoded to text`(type: String, hex: String, value: String) throws {
        #expect(try decode(hex, "{metric: x, type: \(type)}") == ["x \"\(value)\""])
    }

    @Test(
        arguments: [
            ("00", "none"), ("01", "moved"), ("05", "moved, too loose"), ("FF", "moved, too loose, full"),
            ("02", "none"),
        ]
    )
    func `a set is a text of the set flags`(hex: String, value: String) throws {
        let set = "set: {0: moved, 7: full, 2: too loose}"
        #expect(try decode(hex, "{metric: x, type: u8, \(set)}") == ["x \"\(value)\""])
        #expect(try decode(hex, "{flags: f, type: u8}", "{metric: x, from: f, \(set)}") == ["x \"\(value)\""])
    }

    @Test func `an unknown value has a reason metric`() throws {
        let field = "{metric: x, type: u16le, unknown: {0xFFFE: 65534 or more, 0xFFFF: not measured}, unit: ppm}"
        #expect(try decode("90 01", field) == ["x 400", "x_reason null"])
        #expect(try decode("FE FF", field) == ["x null", "x_reason \"65534 or more\""])
        #expect(try decode("FF FF", field) == ["x null", "x_reason \"not measured\""])
        let medical = "{metric: x, type: sfloat, unknown: {0x07FF: not a number, 0x0800: out of range}}"
        #expect(try decode("00 08", medical) == ["x null", "x_reason \"out of range\""])
        #expect(try decode("FE 07", medical) == ["x null", "x_reason \"+infinity\""])
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: [field]))
        #expect(
            profile.characteristics[0].metrics
                == [MetricDescriptor(name: "x", unit: "ppm"), MetricDescriptor(name: "x_reason", kind: .state)]
        )
    }

    @Test(
        arguments: [("FF 07", "2047"), ("00 08", "-2048"), ("FF 0F", "-1"), ("01 F0", "1")]
    )
    func `bits of a field can be signed`(hex: String, value: String) throws {
        #expect(
            try decode(hex, "{flags: f, type: u16le}", "{metric: x, from: \"f[11:0]\", signed: true}") == ["x \(value)"]
        )
    }

    @Test(
        arguments: [
            ("a + b", "05 03", "8"), ("a - b", "03 05", "-2"), ("a * 256 + b", "01 02", "258"), ("a / b", "07 02", "3"),
            ("a % b", "07 04", "3"), ("a / b", "07 00", "0"), ("a % b", "07 00", "0"), ("(a + b) * 2", "01 02", "6"),
            ("a - 1 - 1", "05 00", "3"), ("a + -3", "01 00", "-2"), ("a == b", "05 05", "true"),
            ("!a", "00 00", "true"),
            ("octets * 10 + left", "00 00", "20"), ("a[7:4] * 10 + a[3:0]", "42 00", "42"),
        ]
    )
    func `expressions over fields are values`(expression: String, hex: String, value: String) throws {
        #expect(
            try decode(hex, "{flags: a, type: u8}", "{flags: b, type: u8}", "{metric: x, from: \"\(expression)\"}")
                == ["x \(value)"]
        )
    }

    @Test(
        arguments: [
            ("a * a", Int64.max), ("0 - a * a - a", -.max - 1), ("a * a + a", .max), ("(0 - a * a - a) / -1", .max),
            ("(0 - a * a - a) % -1", 0), ("a * (0 - a)", .min),
        ] as [(String, Int64)]
    )
    func `an overflowing expression is clamped`(expression: String, value: Int64) throws {
        let fields = ["{flags: a, type: u56}", "{metric: x, from: \"\(expression)\"}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        let samples = try ProfileTools.decode(Array(repeating: 0xFF, count: 7), characteristic: 0, of: profile)
        #expect(samples.map(\.value) == [.integer(value)])
    }

    @Test func `fields can depend on the length of the payload`() throws {
        let fields = ["{metric: x, type: u8, when: octets == 1}", "{metric: x, type: u16le, when: left == 2}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("05", by: profile) == ["x 5"])
        #expect(try DeclarativeText.decode("05 01", by: profile) == ["x 261"])
        #expect(try DeclarativeText.decode("05 01 00", by: profile) == [])
    }

    @Test func `a field hides the built-in name`() throws {
        #expect(
            try decode("05 07", "{metric: octets, type: u8}", "{metric: x, type: u8, when: octets == 5}")
                == ["octets 5", "x 7"]
        )
    }

    @Test func `a header can be required`() throws {
        let fields = ["{flags: kind, type: u8, is: [0x10, 0x11]}", "{metric: x, type: u8}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("11 05", by: profile) == ["x 5"])
        #expect(try DeclarativeText.decode("12 05", by: profile) == ["kind is 18 instead of 16 or 17"])
    }

    @Test(
        arguments: [
            ("a + 1, is: 5", "04 07", ["a 4", "x 7"]), ("a + 1, is: 5", "09 07", ["sum is 10 instead of 5"]),
            ("a > 3, is: 1", "04 07", ["a 4", "x 7"]), ("a > 3, is: 1", "03 07", ["sum is 0 instead of 1"]),
            ("\"a[3:0]\", is: [2, 3]", "52 07", ["a 82", "x 7"]),
            ("\"a[3:0]\", is: [2, 3]", "24 07", ["sum is 4 instead of 2 or 3"]),
        ] as [(String, String, [String])]
    )
    func `a computed value can be required`(source: String, hex: String, decoded: [String]) throws {
        let fields = ["{metric: a, type: u8}", "{flags: sum, from: \(source)}", "{metric: x, type: u8}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode(hex, by: profile) == decoded)
    }

    @Test(
        arguments: [
            ("length: 2", "01", "wrong length: 1 bytes instead of 2"), ("length: 2", "01 02", nil),
            ("length: [1, 2]", "01 02 03", "wrong length: 3 bytes instead of 1 to 2"), ("length: [1, 2]", "01", nil),
            ("length: exact", "01 02", "too long: 1 byte after the last field, at offset 1"),
            ("length: exact", "01", nil),
        ]
    )
    func `the length of a payload can be required`(rule: String, hex: String, reason: String?) throws {
        #expect(try decode(hex, "{metric: x, type: u8}", more: "    \(rule)") == [reason ?? "x 1"])
    }

    @Test func `lengths and gaps can come from earlier fields`() throws {
        let fields = [
            "{flags: n, type: u8}", "{metric: name, type: utf8, length: n}", "{skip: n - 1}",
            "{metric: rest, type: bytes, length: left - 1}", "{metric: last, type: u8}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(
            try DeclarativeText.decode("02 41 42 00 DE AD 07", by: profile)
                == ["name \"AB\"", "rest \"dead\"", "last 7"]
        )
        #expect(
            try DeclarativeText.decode("05 41", by: profile) == [
                "truncated: a field at offset 1 needs 5 bytes, 1 left"
            ]
        )
        #expect(try DeclarativeText.decode("00 07", by: profile) == ["name \"\"", "rest \"\"", "last 7"])
    }

    @Test(
        arguments: [
            ("rest", "01 02 03 04", ["a 1", "b 2", "a 3", "b 4"]), ("rest", "", []),
            ("1", "01 02 03 04", ["a 1", "b 2"]),
            ("rest", "01 02 03", ["truncated: a field at offset 3 needs 1 byte, 0 left"]),
            ("octets / 2", "01 02 03", ["a 1", "b 2"]),
        ]
    )
    func `fields can be repeated as a group`(count: String, hex: String, decoded: [String]) throws {
        let field = "{repeat: \(count), fields: [{metric: a, type: u8}, {metric: b, type: u8}]}"
        #expect(try decode(hex, field) == decoded)
    }

    @Test(
        arguments: [
            ("03 01 FF 02 02", ["a 1", "a 2"]), ("02 01 03 02 FF", ["a 1", "a 2"]),
            ("01 01", ["the group at offset 0 is longer than its size of 1 bytes"]),
            ("00 01", ["the group at offset 0 is longer than its size of 0 bytes"]),
            ("09 01 02", ["truncated: a field at offset 2 needs 7 bytes, 1 left"]),
        ]
    )
    func `a group can contain its length in octets`(hex: String, decoded: [String]) throws {
        let field = "{repeat: rest, size: n, fields: [{flags: n, type: u8}, {metric: a, type: u8}]}"
        #expect(try decode(hex, field) == decoded)
    }

    @Test(
        arguments: [
            ("01 05 06", ["kind 1", "a 5", "b 6"]), ("01 05", ["kind 1", "a 5"]),
            ("02 05 06 07", ["kind 2", "a 10", "list 6", "list 7"]), ("03 05", ["kind 3", "end 5"]),
            ("01", ["truncated: a field at offset 1 needs 1 byte, 0 left"]),
        ]
    )
    func `a group can share a condition without repetition`(hex: String, decoded: [String]) throws {
        let lines = try decode(
            hex,
            "{metric: kind, type: u8}",
            "{when: kind == 1, fields: [{metric: a, type: u8}, {metric: b, type: u8, when: left}]}",
            "{when: kind == 2, fields: [{metric: a, type: u8, scale: 2}, {metric: list, type: u8, repeat: rest}]}",
            "{metric: end, type: u8, when: kind == 3}"
        )
        #expect(lines == decoded)
    }

    @Test func `a group with a condition need not consume bytes`() throws {
        let fields = [
            "{flags: f, type: u8}", "{metric: name, type: utf8}", "{when: f.0, fields: [{metric: mode, from: f}]}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("03 41", by: profile) == ["name \"A\"", "mode 3"])
        #expect(try DeclarativeText.decode("02 41", by: profile) == ["name \"A\""])
    }

    @Test func `no bytes are left for a group with a condition after a text that takes the rest`() throws {
        let fields = ["{metric: name, type: utf8}", "{when: octets > 2, fields: [{metric: x, type: u8}]}"]
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields))
        #expect(errors.contains { $0.hasPrefix("10:37: no bytes are left for this field") })
    }

    @Test func `a field beside a group with a condition needs one too`() throws {
        let fields = ["{when: left > 1, fields: [{metric: x, type: u8}]}", "{metric: x, type: u8}"]
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields))
        #expect(errors.contains { $0.hasPrefix("10:10: metric 'x' is defined above; give both a 'when'") })
    }

    @Test func `the size of a group may be any computed number`() throws {
        let lines = try decode(
            "01 02",
            "{metric: a, type: u8}",
            "{flags: least, from: a - 9223372036854775807 - 9223372036854775807}",
            "{repeat: rest, size: least, fields: [{metric: b, type: u8}]}"
        )
        #expect(lines == ["the group at offset 1 is longer than its size of -9223372036854775808 bytes"])
    }

    @Test(
        arguments: [
            ("01 07 00 00", ["f 1", "a 7", "f 0", "f 0", "a null", "a null"]),
            ("00 00 01 07", ["f 0", "f 0", "a null", "a null", "f 1", "a 7"]),
            ("01 07 00 01 08", ["f 1", "a 7", "f 0", "a null", "f 1", "a 8"]), ("00 00", ["f 0", "f 0"]),
        ]
    )
    func `the lists of a group are padded with null to equal lengths`(hex: String, decoded: [String]) throws {
        let fields = "{metric: f, type: u8}, {metric: a, type: u8, when: f, unknown: {9: broken}}"
        let lines = try decode(hex, "{repeat: rest, fields: [\(fields)]}")
        for name in ["f", "a"] {
            #expect(lines.filter { $0.hasPrefix("\(name) ") } == decoded.filter { $0.hasPrefix("\(name) ") })
        }
        #expect(lines.count { $0.hasPrefix("a_reason ") } == lines.count { $0.hasPrefix("a ") })
    }

    @Test(
        arguments: [
            ("0x800", "00 08", "x null"), ("-2048", "00 F8", "x null"), ("0xFFF", "FF 0F", "x null"),
            ("0x800", "FF 07", "x 2047"),
        ]
    )
    func `unknown signed bits are written as bits or as a number`(unknown: String, hex: String, decoded: String) throws
    {
        let field = "{metric: x, from: \"f[11:0]\", signed: true, unknown: \(unknown)}"
        #expect(try decode(hex, "{flags: f, type: u16le}", field) == [decoded])
    }

    @Test(
        arguments: [
            ("i16le", "0x8000", "00 80", "x null"), ("i16le", "-32768", "00 80", "x null"),
            ("i16le", "0xFFFF", "FF FF", "x null"), ("i16le", "0x8000", "00 70", "x 28672"),
            ("i8", "-1", "FF", "x null"), ("u16le", "0x8000", "00 80", "x null"),
        ]
    )
    func `unknown values of a named field are written as its bits or as a number`(
        type: String,
        unknown: String,
        hex: String,
        decoded: String
    ) throws {
        let field = "{metric: x, from: raw, unknown: \(unknown)}"
        #expect(try decode(hex, "{flags: raw, type: \(type)}", field) == [decoded])
        let again = "{metric: x, from: copy, unknown: \(unknown)}"
        #expect(try decode(hex, "{flags: raw, type: \(type)}", "{flags: copy, from: raw}", again) == [decoded])
        let metric = try decode(hex, "{metric: y, type: \(type)}", "{metric: x, from: y, unknown: \(unknown)}")
        #expect(metric.last == decoded)
    }

    @Test func `a negative result of an expression is unknown or has a label`() throws {
        let fields = ["{flags: raw, type: u8}", "{metric: x, from: raw - 9, unknown: -2}"]
        #expect(try decode("07", fields[0], fields[1]) == ["x null"])
        #expect(try decode("08", fields[0], fields[1]) == ["x -1"])
        #expect(try decode("08", fields[0], "{metric: x, from: raw - 9, enum: {-1: below, 0: at}}") == ["x \"below\""])
        #expect(try decode("FE", "{flags: raw, type: i8}", "{metric: x, from: raw, enum: {-2: off}}") == ["x \"off\""])
    }

    @Test func `unknown values are compared as numbers if the field has two types`() throws {
        let fields = [
            "{flags: f, type: u8}", "{flags: raw, type: i8, when: f}", "{flags: raw, type: u8, when: f == 0}",
        ]
        for (hex, unknown) in [("00 80", "0x80"), ("01 80", "-128")] {
            let last = "{metric: x, from: raw, unknown: \(unknown)}"
            #expect(try decode(hex, fields[0], fields[1], fields[2], last) == ["x null"])
        }
    }

    @Test func `an absent field of a round counts as 0`() throws {
        let fields = "{flags: f, type: u8}, {flags: b, type: u8, when: f}, {metric: a, from: b}"
        #expect(try decode("01 07 00", "{repeat: rest, fields: [\(fields)]}") == ["a 7", "a 0"])
    }

    @Test func `an endless repetition is rejected`() throws {
        let endless = "{repeat: rest, fields: [{metric: a, type: u8, when: octets == 1}]}"
        #expect(try decode("01 02", endless) == ["the repetition at offset 0 consumes no bytes"])
        #expect(
            try decode("FF FF FF FF FF FF FF", "{flags: n, type: u56}", "{repeat: n, fields: [{metric: a, from: n.0}]}")
                == ["the repetition at offset 7 consumes no bytes"]
        )
    }

    @Test func `a list can be aggregated`() throws {
        let fields = [
            "{metric: x, type: i8, repeat: rest, unknown: 0x80}", "{metric: n, count: x}",
            "{metric: sum, sum: x, unit: m}",
            "{metric: mean, mean: x}", "{metric: least, min: x}", "{metric: most, max: x}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(
            try DeclarativeText.decode("01 80 04 FE", by: profile).dropFirst(4)
                == ["n 3", "sum 3.0", "mean 1.0", "least -2.0", "most 4.0"]
        )
        #expect(try DeclarativeText.decode("", by: profile) == ["n 0"])
        #expect(profile.characteristics[0].metrics[2].unit == "m")
    }

    @Test func `a counter has a width in bits`() throws {
        let text = DeclarativeText.profile(fields: ["{metric: x, type: u16le, kind: counter, wraps: 12}"])
        let metrics = try DeclarativeText.compile(text).characteristics[0].metrics
        #expect(metrics == [MetricDescriptor(name: "x", kind: .counter, wrapBits: 12)])
    }

    @Test func `an expression can have a name without being a metric`() throws {
        let fields = [
            "{flags: is_wide, from: left > 2}", "{metric: x, type: u16le, when: is_wide}",
            "{metric: x, type: u8, when: \"!is_wide\"}", "{metric: y, type: u8}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("01 02 03", by: profile) == ["x 513", "y 3"])
        #expect(try DeclarativeText.decode("01 03", by: profile) == ["x 1", "y 3"])
    }

    @Test func `an integer can be reinterpreted as another type`() throws {
        let fields = [
            "{flags: w, type: u16le}", "{metric: x, from: w, as: sfloat, scale: 1e9, when: \"w[15:12] >= 8\"}",
            "{metric: x, from: w, as: sfloat, when: \"w[15:12] < 8\"}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("0C 80", by: profile) == ["x 120.0"])
        #expect(try DeclarativeText.decode("0C 00", by: profile) == ["x 12.0"])
        #expect(try DeclarativeText.decode("FF 07", by: profile) == ["x null", "x_reason \"not a number\""])
        #expect(try decode("00 00 C0 3F", "{flags: w, type: u32}", "{metric: x, from: w, as: f32}") == ["x 1.5"])
        #expect(try decode("DA 03 00 FF", "{flags: w, type: u32}", "{metric: x, from: w, as: float}") == ["x 98.6"])
    }

    @Test(
        arguments: [
            ("u8, base: 1.1, offset: -64", "40", "1.0"), ("u8, base: 2", "0A", "1024.0"),
            ("i8, base: 10", "FE", "0.01"),
            ("u16le, base: 10", "FF FF", "null"),
            ("u8, base: 2, unknown: 255", "FF", "null"),
            ("u8, base: 2, range: [0, 100]", "08", "x is 256, outside 0 to 100"),
        ]
    )
    func `a value can be a power, and a too large one is unknown`(field: String, hex: String, value: String) throws {
        let decoded = try decode(hex, "{metric: x, type: \(field)}")
        #expect(decoded == ["x \(value)"] || decoded == [value])
    }
}
