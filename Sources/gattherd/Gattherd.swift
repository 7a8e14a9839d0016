import GattherdConfig
import Glibc

/// The program: finds the command, runs it, and ends with its exit code.
@main
enum Gattherd {
    static let version = "0.1.0"

    static let commands: [CommandSpec] = [
        .run, .check, .doctor, .status, .why, .connect, .disconnect, .set, .bondList, .bondForget, .history, .rejects,
        .export,
        .import,
        .databaseCheck, .databaseCompact, .databaseBackup,
        .profileList, .profileShow, .profileCheck, .profileTest, .profileDecode, .profileDocs, .profileNew,
        .capture, .replay, .simulate, .completions,
    ]

    private static let hiddenCommands: [CommandSpec] = [.completionsWords]

    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        do throws(Failure) {
            try await run(words)
        } catch {
            if let message = error.message { Console.complain(message) }
            exit(error.code.rawValue)
        }
    }

    private static func run(_ words: [String]) async throws(Failure) {
        switch words.first {
        case nil: throw Failure(.usage, help)
        case "--help", "-h", "help": Console.say(help)
        case "--version": Console.say("gattherd \(version)")
        default: try await runCommand(words)
        }
    }

    private static func runCommand(_ words: [String]) async throws(Failure) {
        for count in [2, 1] where words.count >= count {
            let name = words.prefix(count).joined(separator: " ")
            guard let command = (commands + hiddenCommands).first(where: { $0.name == name }) else { continue }
            let rest = Array(words.dropFirst(count))
            let options = rest.prefix { $0 != "--" }
            if options.contains("--help") || options.contains("-h") { return Console.say(command.help) }
            return try await command.run(Arguments(rest, for: command))
        }
        throw unknown(words)
    }

    private static func unknown(_ words: [String]) -> Failure {
        let first = words.first ?? ""
        let family = commands.filter { $0.name.hasPrefix(first + " ") }
        if !family.isEmpty {
            let lines = family.map { "  \($0.usage)" }.joined(separator: "\n")
            return Failure(.usage, "gattherd \(first): one of\n\(lines)")
        }
        let names = commands.map { $0.name }
        let question = Spelling.nearest(to: first, among: names).map { "; did you mean '\($0)'?" } ?? ""
        return Failure(.usage, "gattherd: there is no command '\(first)'\(question) See gattherd --help")
    }

    private static var help: String {
        let width = commands.map(\.name.count).max() ?? 0
        let lines = commands.map { "  \($0.name.padded(to: width))  \($0.summary)" }
        return """
            gattherd \(version): keeps Bluetooth LE peripherals connected, their samples in SQLite and on MQTT.

            Usage: gattherd COMMAND [arguments]

            \(lines.joined(separator: "\n"))

            gattherd COMMAND --help says more. Exit codes are those of sysexits.h.
            """
    }
}
