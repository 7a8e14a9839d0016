import GattherdGATT
import GattherdModel
import GattherdProfiles
import Testing

/// Formulas with real numbers, texts that end at a NUL, events that fall back, and keys made of parts.
struct FormulaTests {
    private func decode(_ hex: String, _ formula: String, more: String = "") throws -> [String] {
        try DeclarativeText.decode(
            hex,
            fields: "{flags: a, type: u8}",
            "{flags: b, type: i8}",
            "{metric: x, formula: \"\(formula)\"\(more)}"
        )
    }

    @Test(arguments: [
        ("0A FE", "a * 0.5", "x 5.0"), ("0A FE", "a / 4", "x 2.5"), ("0A FE", "b", "x -2.0"),
        ("0A FE", "-b", "x 2.0"), ("0A FE", "1.5e1 + 2.5E-1", "x 15.25"), ("0A FE", "a.1 + a[3:0]", "x 11.0"),
        ("09 02", "sqrt(a)", "x 3.0"), ("09 02", "pow(a, b)", "x 81.0"), ("09 02", "min(a, b) - max(a, b)", "x -7.0"),
        ("00 00", "exp(a)", "x 1.0"), ("01 00", "ln(a)", "x 0.0"), ("09 04", "a % b", "x 1.0"),
        ("09 02", "(a > b) * 0.25", "x 0.25"), ("03 00", "1 / a", "x 0.33"), ("03 00", "2 - - a", "x 5.0"),
    ])
    func `a formula computes with real numbers`(hex: String, formula: String, result: String) throws {
        #expect(try decode(hex, formula) == [result])
    }

    @Test func `decimals, tables and bounds apply to a formula`() throws {
        #expect(try decode("03 00", "1 / a", more: ", decimals: 4") == ["x 0.3333"])
        #expect(try decode("03 00", "1 / a", more: ", decimals: 0") == ["x 0.0"])
        #expect(try decode("03 00", "a * 50.0", more: ", clamp: [0, 100]") == ["x 100.0"])
        #expect(try decode("03 00", "a * 50.0", more: ", range: [0, 100]") == ["x is 150, outside 0 to 100"])
    }

    @Test(arguments: ["1 / b", "ln(b)", "sqrt(0 - a)", "exp(a * 100)"])
    func `a formula without a value is unknown`(formula: String) throws {
        #expect(try decode("FF 00", formula) == ["x is not a number: the formula has no value"])
    }

    @Test(arguments: [
        ("{metric: x, formula: 1, scale: 2}", "9:33: 'scale' is a part of the formula itself"),
        ("{metric: x, formula: 1.5 *}", "9:35: '1.5 *': expected a name, a number or '('"),
        ("{metric: x, formula: sqrt 2}", "9:35: 'sqrt 2': expected '(' after 'sqrt'"),
        ("{metric: x, formula: pow(1)}", "9:35: 'pow(1)': 'pow' takes 2 arguments"),
        ("{metric: x, formula: 1e999}", "9:30: '1e999': '1e999' is too large"),
        ("{metric: x, formula: y}", "9:30: 'y': no earlier field is called 'y'"),
        ("{metric: x, type: u8, decimals: 1}", "9:31: 'decimals' is for 'formula'"),
        ("{metric: x, from: 1.5}", "9:28: '1.5':"), ("{flags: x, formula: 1.5}", "9:9: a field needs 'type'"),
        ("{metric: x, type: u8, formula: 1}", "9:31: 'formula' cannot be combined with 'type'"),
    ])
    func `a mistake is reported at its place`(field: String, error: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }

    @Test(arguments: [
        ("41 42 00 07", ["t \"AB\"", "x 7"]), ("00 07", ["t \"\"", "x 7"]), ("41 20 00 07", ["t \"A\"", "x 7"]),
        ("C3 A4 00 07", ["t \"ä\"", "x 7"]), ("FF 00 07", ["t \"\u{FFFD}\"", "x 7"]),
    ])
    func `a text ends at a NUL, which is consumed`(hex: String, result: [String]) throws {
        #expect(
            try DeclarativeText.decode(hex, fields: "{metric: t, type: cstring}", "{metric: x, type: u8}") == result
        )
    }

    @Test func `a text without a NUL ends with the payload`() throws {
        #expect(try DeclarativeText.decode("41 42", fields: "{metric: t, type: cstring}") == ["t \"AB\""])
    }

    @Test func `a text of a fixed length ends at its first NUL`() throws {
        let fields = ["{metric: t, type: cstring, length: 4}", "{metric: x, type: u8}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("41 00 42 43 07", by: profile) == ["t \"A\"", "x 7"])
        #expect(try DeclarativeText.decode("41 42 43 44 07", by: profile) == ["t \"ABCD\"", "x 7"])
        #expect(try DeclarativeText.decode("41 00 42", by: profile)[0].hasPrefix("truncated"))
    }

    @Test func `an event falls back to false, to the label of 0, or to the number for 0`() throws {
        let profile = try DeclarativeText.compile(
            DeclarativeText.profile(fields: [
                "{flags: f, type: u8}", "{metric: a, from: f.0, reset: 60s}",
                "{metric: b, type: bool, reset: 2m}", "{metric: c, type: u8, enum: {0: idle, 1: open}, reset: 1s}",
                "{metric: d, type: u8, offset: 5, reset: 1d}", "{metric: e, type: u8}",
            ])
        )
        let resets = profile.streams[0].metrics.filter { !$0.name.hasSuffix("_reason") }.map(\.reset)
        #expect(
            resets == [
                MetricReset(after: .seconds(60), value: .boolean(false)),
                MetricReset(after: .seconds(120), value: .boolean(false)),
                MetricReset(after: .seconds(1), value: .text("idle")),
                MetricReset(after: .seconds(86_400), value: .integer(5)), nil,
            ]
        )
    }

    @Test(
        arguments: [
            ("type: u8, table: {0: 100, 255: 0}", .real(100)), ("type: u8, clamp: [5, 10]", .integer(5)),
            ("type: u8, base: 2", .real(1)), ("type: i8, scale: 0.5, offset: -40", .real(-40)),
            ("type: f32, offset: 5", .real(5)), ("type: sfloat", .real(0)), ("type: ascii, length: 2", .real(0)),
            ("formula: f * 2, clamp: [3, 9]", .real(3)), ("from: f.0, enum: {0: shut, 1: open}", .text("shut")),
            ("type: u8, range: [1, 5]", .integer(0)), ("type: u8, unknown: {0: off}", .integer(0)),
            ("type: u8, scale: 0.5, range: [1, 5]", .real(0)), ("increase: f, range: [1, 5]", .integer(0)),
            ("type: u8, table: {0: 9, 5: 1}, range: [1, 5]", .real(9)),
            ("type: u8, unknown: 0, enum: {0: idle, 1: open}", .text("idle")),
        ] as [(String, SampleValue)]
    )
    func `an event falls back to the value that its field has for 0`(keys: String, value: SampleValue) throws {
        let fields = ["{flags: f, type: u8}", "{metric: x, \(keys), kind: event, reset: 60s}"]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(profile.streams[0].metrics[0].reset == MetricReset(after: .seconds(60), value: value))
    }

    /// The fields of an event in payloads of two kinds.
    private static func event(_ second: String) -> [String] {
        [
            "{flags: k, type: u8}", "{metric: n, type: u8, when: k == 1, kind: event, reset: 10s}",
            "{metric: n, \(second), when: k == 2, kind: event}",
        ]
    }

    @Test(
        arguments: [
            "formula: k * 2", "type: f32", "type: ascii, length: 2", "type: u8, clamp: [5, 10]",
            "type: u8, table: {0: 100, 255: 0}",
        ]
    )
    func `an event falls back to the number for 0 of its first field`(keys: String) throws {
        let fields = Self.event("\(keys), reset: 10s")
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(profile.streams[0].metrics[0].reset == MetricReset(after: .seconds(10), value: .integer(0)))
    }

    @Test(arguments: ["type: u8, reset: 20s", "type: u8", "type: bool, reset: 10s"])
    func `fields of an event have the same reset`(keys: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: Self.event(keys)))
        #expect(errors == ["11:10: metric 'n' is defined above with another unit, kind, repetition or reset"])
    }

    @Test(arguments: [
        ("{metric: x, type: u8, enum: {1: open}, reset: 60s}", "'reset' needs a label for 0"),
        ("{metric: x, type: utf8, reset: 60s}", "'reset' is for numbers, labels and booleans"),
        ("{metric: x, type: u8, repeat: rest, reset: 60s}", "a list cannot be reset"),
        ("{metric: x, type: u8, reset: 60}", "'60' is invalid"),
    ])
    func `an event that cannot fall back is reported`(field: String, error: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
        #expect(errors.contains { $0.contains(error) }, "\(errors)")
    }
}
