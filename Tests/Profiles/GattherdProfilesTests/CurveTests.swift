import GattherdProfiles
import Testing

/// Curves, bounds and numbers in ASCII digits.
struct CurveTests {
    private static let battery = "{metric: x, type: u16be, scale: 0.001, table: {3.0: 100, 2.2: 0, 2.8: 60}}"

    @Test(
        arguments: [
            ("0898", "x 0.0"), ("0AF0", "x 60.0"), ("0BB8", "x 100.0"), ("09C4", "x 30.0"), ("0B54", "x 80.0"),
            ("0000", "x 0.0"), ("FFFF", "x 100.0"), ("0899", "x 0.1"),
        ]
    )
    func `values between points are interpolated, others are clamped`(hex: String, value: String) throws {
        #expect(try DeclarativeText.decode(hex, fields: Self.battery) == [value])
    }

    @Test func `values are set to the bounds and keep their type`() throws {
        let field = "{metric: x, type: i8, clamp: [0, 100]}"
        #expect(try DeclarativeText.decode("FF", fields: field) == ["x 0"])
        #expect(try DeclarativeText.decode("65", fields: field) == ["x 100"])
        #expect(try DeclarativeText.decode("32", fields: field) == ["x 50"])
        let scaled = "{metric: x, type: u8, scale: 0.1, clamp: [0.5, 20.25]}"
        #expect(try DeclarativeText.decode("FF", fields: scaled) == ["x 20.25"])
        #expect(try DeclarativeText.decode("00", fields: scaled) == ["x 0.5"])
        #expect(try DeclarativeText.decode("0F", fields: scaled) == ["x 1.5"])
    }

    @Test func `a range applies to the value of the table`() throws {
        let field = "{metric: x, type: u8, table: {0: 0, 100: 200}, range: [0, 100]}"
        #expect(try DeclarativeText.decode("32", fields: field) == ["x 100.0"])
        #expect(try DeclarativeText.decode("33", fields: field)[0].contains("102, outside 0 to 100"))
    }

    @Test func `special numbers stay unknown`() throws {
        let field = "{metric: x, type: f32le, table: {0: 0, 1: 1}, clamp: [0, 1]}"
        let samples = try DeclarativeText.decode("0000C07F 05", fields: field, "{metric: y, type: u8}")
        #expect(samples == ["x null", "x_reason \"not a number\"", "y 5"])
    }

    @Test(
        arguments: [
            ("2D32332E35", "x -23.5"), ("3233", "x 23.0"), ("2B2E35", "x 0.5"), ("20203700", "x 7.0"),
            ("2E3520", "x 0.5"), ("303132", "x 12.0"), ("352E", "x 5.0"),
            ("393939393939393939393939393939", "x 999999999999999.0"),
        ]
    )
    func `numbers in digits are decoded`(hex: String, value: String) throws {
        #expect(try DeclarativeText.decode(hex, fields: "{metric: x, type: ascii}") == [value])
    }

    @Test(
        arguments: [
            "", "2D", "2E", "2B2D35", "3120 32", "312E322E33", "7831", "313265 33", "35 2D", "FF", "35 41",
            "31313131313131313131313131313131",
        ]
    )
    func `a text that is not a decimal number is not accepted by the type ascii`(hex: String) throws {
        #expect(try DeclarativeText.decode(hex, fields: "{metric: x, type: ascii}") == ["x is not a number"])
    }

    @Test func `digits have a length, scale and bounds`() throws {
        let field = "{metric: x, type: ascii, length: 3, scale: 0.1, clamp: [0, 20]}"
        #expect(try DeclarativeText.decode("313233 05", fields: field, "{metric: y, type: u8}") == ["x 12.3", "y 5"])
        #expect(try DeclarativeText.decode("393939", fields: field) == ["x 20.0"])
        #expect(try DeclarativeText.decode("3939", fields: field)[0].hasPrefix("truncated"))
    }

    @Test(
        arguments: [
            ("{metric: x, type: u8, table: {1: 2}}", "9:31: a table has 2 to 64 different numbers"),
            ("{metric: x, type: u8, table: [1, 2]}", "9:31: a table has 2 to 64 different numbers"),
            ("{metric: x, type: u8, table: {1: 2, 1.0: 3}}", "9:31: a table has 2 to 64 different numbers"),
            ("{metric: x, type: u8, table: {1: 2, 2: many}}", "9:48: 'many' is invalid; expected a number such as"),
            ("{metric: x, type: u8, clamp: [1]}", "9:38: a clamp is a list of two bounds"),
            ("{metric: x, type: u8, clamp: [2, 1]}", "9:38: the lower bound comes first"),
            ("{metric: x, type: u8, enum: {0: a}, clamp: [0, 1]}", "9:45: 'clamp' cannot be combined with 'enum'"),
            ("{metric: x, type: utf8, table: {0: 1, 1: 2}}", "9:33: 'table' has a meaning for numbers only"),
            ("{metric: x, type: ascii, unknown: 5}", "9:34: 'unknown' has no meaning for a number in ASCII digits"),
        ]
    )
    func `errors in curves and bounds have a position`(field: String, error: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [field]))
        #expect(errors.contains { $0.hasPrefix(error) }, "\(errors)")
    }
}
