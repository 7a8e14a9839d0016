import Testing

@testable import gattherd

@Suite struct ArgumentsTests {
    @Test(arguments: ["5", "-5", "-0.5", "-1e3", "-"])
    func `A number is a value, also a negative one`(word: String) throws {
        let arguments = try Arguments(["dial", "number", word], for: .set)
        #expect(arguments.positionals == ["dial", "number", word])
    }

    @Test(arguments: ["-x", "-5x", "--5", "--number"])
    func `Any other word that begins with a hyphen is an option`(word: String) {
        #expect(throws: CommandFailure.self) { try Arguments(["dial", "number", word], for: .set) }
    }

    @Test func `After two hyphens there are no options`() throws {
        #expect(try Arguments(["dial", "--", "number", "--5"], for: .set).positionals == ["dial", "number", "--5"])
    }
}
