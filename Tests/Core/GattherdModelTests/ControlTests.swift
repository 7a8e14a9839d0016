import GattherdModel
import Testing

@Suite struct ControlTests {
    @Test(
        arguments: [
            (.text("eco"), "eco"), (.text("30"), "30"), (.integer(30), "30"), (.real(30), "30"), (.real(0.5), "0.5"),
            (.real(1), "1.00"), (.boolean(true), "true"), (.text("true"), "true"),
        ] as [(ControlValue, String)]
    )
    func `a choice is found by its label, including labels such as 5 and true`(
        value: ControlValue,
        label: String
    ) throws {
        let kind = ControlKind.choice(["10", "30", "0.5", "1.00", "true", "eco"])
        #expect(try kind.accept(value) == .text(label))
    }

    @Test func `an exact label precedes one of equal value`() throws {
        #expect(try ControlKind.choice(["1.0", "1"]).accept(.integer(1)) == .text("1"))
    }

    @Test(
        arguments: [.integer(3), .real(30.5), .real(.nan), .boolean(true), .text("30.0"), .text(""), .trigger]
            as [ControlValue]
    )
    func `an unknown choice is refused with the list of choices`(value: ControlValue) {
        #expect(throws: ControlError.invalidValue(value.description, expected: "one of 10, 30, eco")) {
            try ControlKind.choice(["10", "30", "eco"]).accept(value)
        }
    }
}
