import GattherdModel
import Testing

@Suite("Control")
struct ControlTests {
    @Test(
        "A choice is known by its label, also where that reads as a number or as true or false",
        arguments: [
            (.text("eco"), "eco"), (.text("30"), "30"), (.integer(30), "30"), (.real(30), "30"), (.real(0.5), "0.5"),
            (.real(1), "1.00"), (.boolean(true), "true"), (.text("true"), "true"),
        ] as [(ControlValue, String)]
    )
    func choice(value: ControlValue, label: String) throws {
        let kind = ControlKind.choice(["10", "30", "0.5", "1.00", "true", "eco"])
        #expect(try kind.accept(value) == .text(label))
    }

    @Test("The label that is written as the value comes before one that only reads as it")
    func exactChoice() throws {
        #expect(try ControlKind.choice(["1.0", "1"]).accept(.integer(1)) == .text("1"))
    }

    @Test(
        "What is none of the choices is refused with all of them",
        arguments: [.integer(3), .real(30.5), .real(.nan), .boolean(true), .text("30.0"), .text(""), .trigger]
            as [ControlValue]
    )
    func noChoice(value: ControlValue) {
        #expect(throws: ControlError.invalidValue(value.description, expected: "one of 10, 30, eco")) {
            try ControlKind.choice(["10", "30", "eco"]).accept(value)
        }
    }
}
