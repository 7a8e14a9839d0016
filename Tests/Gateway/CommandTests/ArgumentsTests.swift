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

    @Test(arguments: ["0", "-1", "31536001", "9223372036854775807", "9223372036854775808", "1.5", "x"])
    func `a time limit is 1 second to 1 year`(word: String) throws {
        let message = "--seconds is a number from 1 to 31536000"
        let commands: [(CommandSpec, [String])] = [
            (.scan, []), (.watch, ["C0:FF:EE:00:00:01", "2a37"]), (.capture, ["C0:FF:EE:00:00:01", "-"]),
        ]
        for (command, words) in commands {
            let arguments = try Arguments(words + ["--seconds", word], for: command)
            let failure = #expect(throws: CommandFailure.self) { try arguments.seconds("seconds") }
            #expect(failure?.message?.contains(message) == true)
        }
        let scan = try Arguments(["--seconds", word], for: .scan)
        #expect(throws: CommandFailure.self) { try ScanCommand(scan) }
        let capture = try Arguments(["all", "-", "--advertisements", "--seconds", word], for: .capture)
        #expect(throws: CommandFailure.self) { try AdvertisementCaptureCommand(capture) }
        #expect(try Arguments(["--seconds", "31536000"], for: .scan).seconds("seconds") == 31_536_000)
    }

    @Test func `a count may be any positive number`() throws {
        let words = ["C0:FF:EE:00:00:01", "2a37", "--count", "9223372036854775807"]
        #expect(try Arguments(words, for: .watch).number("count") == .max)
        #expect(throws: CommandFailure.self) {
            try Arguments(["--count", "0"] + words.prefix(2), for: .watch).number("count")
        }
    }
}
