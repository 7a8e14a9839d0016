import FoundationEssentials
import Glibc
import TestKit
import Testing

@testable import gattherd

@Suite(.timeLimit(.minutes(1))) struct CompletionTests {
    private static func words(_ words: String...) -> [String] {
        Completion(of: words, among: Gattherd.commands).candidates.map(\.word)
    }

    @Test func `the first word is a command or a family of commands`() {
        #expect(Self.words("st") == ["status"])
        #expect(Self.words("").contains("profile"))
        #expect(Self.words("").contains("run"))
        #expect(!Self.words("").contains("profile list"))
    }

    @Test func `the second word is a command of the family`() {
        #expect(Self.words("bond", "") == ["list", "forget"])
        #expect(Self.words("bond", "f") == ["forget"])
        #expect(Self.words("nothing", "") == [])
    }

    @Test func `the help of a command is completed like the command`() {
        #expect(Self.words("he") == ["help"])
        #expect(Self.words("").contains("help"))
        #expect(Self.words("help", "st") == ["status"])
        #expect(Self.words("help", "bond", "") == ["list", "forget"])
        #expect(Self.words("help", "").contains("profile"))
        #expect(!Self.words("help", "").contains("help"))
        #expect(Self.words("help", "status", "") == [])
    }

    @Test func `options of the program come before any command`() {
        #expect(Self.words("-") == ["--help", "--version"])
        #expect(Self.words("--v") == ["--version"])
        #expect(!Self.words("").contains("--version"))
    }

    @Test func `an option is offered once`() {
        #expect(Self.words("status", "-") == ["--config", "--json", "--watch", "--help"])
        #expect(Self.words("status", "--json", "-") == ["--config", "--watch", "--help"])
    }

    @Test func `a value is completed after a space and after an equals sign`() {
        #expect(Self.words("history", "--format", "") == ["table", "csv", "json", "plot"])
        #expect(Self.words("history", "--format=c") == ["--format=csv"])
        #expect(Self.words("history", "--format", "=", "c") == ["csv"])
        #expect(Self.words("history", "--format", "=") == ["table", "csv", "json", "plot"])
        #expect(Self.words("completions", "f") == ["fish"])
    }

    @Test func `the shell completes files`() {
        #expect(Self.words("run", "--config", "x") == [":files"])
        #expect(Self.words("check", "") == [":files"])
        #expect(Self.words("check", "a", "").first == "--json")
    }

    @Test func `the devices come from the given configuration`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("g.yaml")
        let text = """
            history: {path: h.db}
            devices:
              - {name: strap, address: C0:FF:EE:00:00:01}
              - {name: dial, address: C0:FF:EE:00:00:02}
            """
        try Data(text.utf8).write(to: URL(filePath: file))
        #expect(Self.words("connect", "--config", file, "") == ["strap", "dial"])
        #expect(Self.words("history", "--config=" + file, "--device", "s") == ["strap"])
        #expect(Self.words("watch", "--config", file, "") == ["strap", "dial"])
        #expect(Self.words("capture", "--config", file, "") == ["strap", "dial", "all"])
        #expect(Self.words("set", "strap", "--config", file, "") == ["--help"])
        #expect(Self.words("connect", "--config", folder.file("none"), "") == ["--help"])
    }

    @Test func `each option with choices offers them`() {
        for command in Gattherd.commands {
            for option in command.options where option.value == "FORMAT" { #expect(!option.choices.isEmpty) }
        }
    }

    @Test func `every placeholder is completed or needs text of the user`() {
        let texts: Set = [
            "ADDRESS", "BIN", "CHARACTERISTIC", "CONTROL", "COUNT", "GATEWAY", "HEX", "KEY", "KEY=VALUE", "N", "NAME",
            "NEW", "OLD", "SECONDS", "TEXT", "TIME", "UNIT", "URL", "UUID", "VALUE", "WORD",
        ]
        let completion = Completion(of: ["run", ""], among: Gattherd.commands)
        var unknown: Set<String> = []
        for command in Gattherd.commands {
            let options = command.options.filter(\.choices.isEmpty).compactMap(\.value)
            let positionals = command.positionals.filter(\.choices.isEmpty).map(\.name)
            unknown.formUnion((options + positionals).flatMap { $0.split(separator: "|") }.map { String($0) })
        }
        unknown = unknown.filter { !texts.contains($0) && completion.candidates(for: $0) == nil }
        #expect(unknown == [])
    }

    // MARK: - In real shells

    /// Returns the output of a shell for a script that uses the built gattherd.
    private static func run(_ shell: String, _ options: [String], _ script: String) async throws -> String {
        let folder = try TemporaryFolder()
        let file = folder.file("script")
        try Data(script.utf8).write(to: URL(filePath: file))
        let path = "PATH=\(Programs.folder.path):\(Terminal.environment("PATH") ?? "")"
        let (code, output) = try await Programs.run("env", [path, shell] + options + [file])
        #expect(code == 0)
        return output
    }

    @Test func `bash completes commands, options, values and files`() async throws {
        let script = """
            source <(gattherd completions bash)
            compopt() { echo "files"; }
            try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gattherd gattherd; echo "${COMPREPLY[*]}"; }
            try gattherd sta
            try gattherd history --format ''
            try gattherd history --format = c
            try gattherd check ''
            complete -p gattherd
            """
        let output = try await Self.run("bash", ["--norc", "--noprofile"], script)
        #expect(output == "status\ntable csv json plot\ncsv\nfiles\n\ncomplete -F _gattherd gattherd\n")
    }

    @Test(.enabled(if: Programs.isThere("zsh"), "apt-get install zsh"))
    func `zsh completes commands, options, values and files`() async throws {
        let script = """
            compdef() { print -r -- "compdef $*"; }
            _files() { print files; }
            _describe() { print -rl -- "${(@P)argv[-1]}"; }
            source <(gattherd completions zsh)
            try() { words=("$@"); CURRENT=$#; _gattherd; }
            try gattherd sta
            try gattherd history --format c
            try gattherd check ''
            """
        let output = try await Self.run("zsh", ["-f"], script)
        let status = CommandSpec.status.summary
        #expect(output == "compdef _gattherd gattherd\nstatus:\(status)\ncsv\nfiles\n")
    }

    @Test(.enabled(if: Programs.isThere("fish"), "apt-get install fish"))
    func `fish completes commands and options`() async throws {
        let folder = try TemporaryFolder()
        try Data().write(to: URL(filePath: folder.file("only.yaml")))
        let script = """
            gattherd completions fish | source
            complete -C "gattherd sta"
            complete -C "gattherd history --format c"
            complete -C "gattherd check \(folder.path)/on"
            """
        let output = try await Self.run("fish", ["--no-config"], script)
        #expect(output == "status\t\(CommandSpec.status.summary)\ncsv\n\(folder.file("only.yaml"))\n")
    }
}

extension Programs {
    /// Returns true if a program is in PATH.
    fileprivate static func isThere(_ name: String) -> Bool {
        Terminal.environment("PATH")?.split(separator: ":").contains { unsafe access("\($0)/\(name)", X_OK) == 0 }
            ?? false
    }
}
