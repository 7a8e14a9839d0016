import Testing

@testable import gattherd

@Suite struct ArgumentsTests {
    @Test(arguments: ["5", "-5", "-0.5", "-1e3", "-"])
    func `a negative number is a value`(word: String) throws {
        let arguments = try Arguments(["dial", "number", word], for: .set)
        #expect(arguments.positionals == ["dial", "number", word])
    }

    @Test(arguments: ["-x", "-5x", "--5", "--number"])
    func `any other word with a hyphen is an option`(word: String) {
        #expect(throws: CommandFailure.self) { try Arguments(["dial", "number", word], for: .set) }
    }

    @Test func `check accepts a file with or without --config, but not two`() throws {
        for words in [["a.yaml"], ["--config", "a.yaml"], []] {
            #expect(throws: Never.self) { try CheckCommand(try Arguments(words, for: .check)) }
        }
        #expect(throws: CommandFailure.self) { try CheckCommand(try Arguments(["a", "--config", "b"], for: .check)) }
    }

    @Test func `after two hyphens there are no options`() throws {
        #expect(try Arguments(["dial", "--", "number", "--5"], for: .set).positionals == ["dial", "number", "--5"])
    }
}
