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
            (
                ["{metric: t, type: i8, when: left == 1}", group],
                "10:50: metric 't' is defined above the group, which cannot number it; give the field of the group"
            ),
            (
                ["{metric: t, type: i8}", "{objects: {id: u8}, kinds: {1: {metric: t, type: i8}, 2: {skip: 1}}}"],
                "10:41: metric 't' is defined above the group, which cannot number it; give the field of the group"
            ),
        ] as [([String], String)]
    )
    func `a metric of an earlier field is an error in a numbered group`(fields: [String], error: String) throws {
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
}
