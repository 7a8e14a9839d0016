import GattherdProfiles
import Testing

/// Numbered groups beside other metrics.
struct NumberedGroupTests {
    private static let group = "{repeat: rest, numbered: true, fields: [{metric: t, type: i8}]}"

    @Test func `further values of a metric in a payload have numbers`() throws {
        #expect(try DeclarativeText.decode("10 20 30", fields: Self.group) == ["t 16", "t_2 32", "t_3 48"])
    }

    @Test(
        arguments: [
            (["{metric: t, type: i8}", group], "10 20 30", ["t 16", "t_2 32", "t_3 48"]),
            (["{metric: t, type: i8, when: left == 3}", group], "10 20 30", ["t 16", "t_2 32", "t_3 48"]),
            (["{metric: t, type: i8, when: left == 3}", group], "10 20", ["t 16", "t_2 32"]),
            (["{metric: x, type: i8}", "{metric: t, type: i8}", group], "01 10 20", ["x 1", "t 16", "t_2 32"]),
        ] as [([String], String, [String])]
    )
    func `a field before a numbered group gives the first value of its metric`(
        fields: [String],
        hex: String,
        values: [String]
    ) throws {
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode(hex, by: profile) == values)
    }

    @Test func `payloads of two kinds give a metric in a field and in objects`() throws {
        let objects = "{objects: {id: u8}, when: kind == 2, kinds: {1: {metric: battery, type: u8}, 2: {skip: 1}}}"
        let fields = ["{flags: kind, type: u8}", "{metric: battery, type: u8, when: kind == 1}", objects]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("01 32", by: profile) == ["battery 50"])
        #expect(try DeclarativeText.decode("02 01 32 02 00 01 28", by: profile) == ["battery 50", "battery_2 40"])
    }

    @Test func `a payload with more than eight values of a metric is a reject, also before the group`() throws {
        let profile = try DeclarativeText.compile(
            DeclarativeText.profile(fields: ["{metric: t, type: i8, when: left > 8}", Self.group])
        )
        let values = try DeclarativeText.decode("01 02 03 04 05 06 07 08", by: profile)
        #expect(values.last == "t_8 8")
        let reject = try DeclarativeText.decode("01 02 03 04 05 06 07 08 09", by: profile)
        #expect(reject.count == 1 && reject[0].contains("it has more than 8 values of 't'"), "\(reject)")
    }

    private static let single = "{repeat: 1, numbered: true, fields: [{metric: t, type: i8}]}"
    private static let pair = "{repeat: 1, numbered: true, fields: [{metric: t, type: i8}, {metric: t_2, type: i8}]}"
    private static let kinds = "{objects: {id: u8}, kinds: {1: {metric: t, type: i8}, 2: {metric: t_8, type: i8}}}"

    @Test(
        arguments: [
            (["{metric: t_2, type: i8}", group], "10:24: a further value is named 't_2', as is another field;"),
            (["{flags: t_2, type: u8}", group], "10:24: a further value is named 't_2', as is another field;"),
            ([pair], "9:21: a further value is named 't_2', as is another field;"),
            ([kinds], "9:10: a further value is named 't_8', as is another field;"),
            ([single, "{metric: t_2, type: i8}"], "10:10: 't_2' is a further value of the numbered group above;"),
            ([single, "{flags: t_2, type: u8}"], "10:10: 't_2' is a metric already;"),
        ] as [([String], String)]
    )
    func `a field with the name of a further value is an error`(fields: [String], error: String) throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: fields))
        #expect(errors.count == 1 && errors[0].hasPrefix(error), "\(errors)")
    }

    @Test func `metrics after a numbered group do not count as its values`() throws {
        let fields = [
            "{repeat: 1, numbered: true, fields: [{metric: t, type: i8}]}", "{metric: battery, type: u8}",
            "{metric: t, type: i8, when: left >= 1}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("10 50 20", by: profile) == ["t 16", "battery 80", "t_2 32"])
    }

    @Test func `a field after a numbered group may continue its metric`() throws {
        let fields = [
            "{repeat: 1, numbered: true, fields: [{metric: t, type: i8}]}", "{metric: t, type: i8, when: left >= 1}",
        ]
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode("10 20", by: profile) == ["t 16", "t_2 32"])
    }

    private static let broken = "{metric: t, type: i8, unknown: {0x7F: broken}}"
    private static let ranged = "{metric: t, type: i8, range: [0, 50]}"
    private static let brokenGroup = "{repeat: rest, numbered: true, fields: [\(broken)]}"

    @Test(
        arguments: [
            (["{metric: t, type: i8}", brokenGroup], "10 7F", ["t 16", "t_2 null", #"t_reason_2 "broken""#]),
            ([ranged, brokenGroup], "10 7F", ["t 16", "t_2 null", #"t_reason_2 "broken""#]),
            (
                [broken, single, broken], "7F 20 30",
                ["t null", #"t_reason "broken""#, "t_2 32", "t_3 48", "t_reason_3 null"]
            ),
            ([single, ranged], "10 46", ["t 16", "t_2 null"]),
        ] as [([String], String, [String])]
    )
    func `a reason has the number of its value`(fields: [String], hex: String, values: [String]) throws {
        let profile = try DeclarativeText.compile(DeclarativeText.profile(fields: fields))
        #expect(try DeclarativeText.decode(hex, by: profile) == values)
    }

    @Test func `a field after a numbered group has no reasons that the group lacks`() throws {
        let errors = try DeclarativeText.errors(DeclarativeText.profile(fields: [Self.single, Self.broken]))
        #expect(errors == ["10:31: the numbered group above has no reasons for this metric; give it the same"])
    }
}
