import GattherdConfig
import GattherdGateway
import GattherdYAML
import Glibc

/// The program: finds the command, runs it, and ends with its exit code.
@main
enum Gattherd {
    static let commands: [CommandSpec] = [
        .run, .check, .doctor, .status, .why, .reload, .connect, .disconnect, .set, .scan, .add, .inspect, .read,
        .write, .watch,
        .bondList, .bondForget, .history, .rejects,
        .export,
        .import, .statistics,
        .databaseCheck, .databaseCompact, .databaseBackup, .databaseRestore,
        .backup, .restore, .migrate,
        .configurationSet, .configurationUnset, .configurationSchema, .configurationPage, .configurationManual,
        .fleetInit, .fleetUpgrade, .fleetAdd, .fleetRename, .fleetRemove, .fleetStatus, .fleetDevices, .fleetWhy,
        .profileList, .profileModels, .profileShow, .profileCheck, .profileTest, .profileDecode, .profileDocs,
        .profileNew,
        .capture, .replay, .simulate, .completions,
    ]

    private static let hiddenCommands: [CommandSpec] = [.completionsWords]

    static func main() async {
        Terminal.openStandardDescriptors()
        let words = Array(CommandLine.arguments.dropFirst())
        do throws(CommandFailure) {
            try await run(words)
        } catch {
            if let message = error.message { Terminal.printError(message) }
            exit(error.code.rawValue)
        }
    }

    private static func run(_ words: [String]) async throws(CommandFailure) {
        switch words.first {
        case nil: throw CommandFailure(.usage, help)
        case "--help", "-h": Terminal.say(help)
        case "help": try await help(Array(words.dropFirst()))
        case "--version": Terminal.say("gattherd \(GattherdVersion.current)")
        default: try await runCommand(words)
        }
    }

    private static func runCommand(_ words: [String]) async throws(CommandFailure) {
        for count in [2, 1] where words.count >= count {
            let name = words.prefix(count).joined(separator: " ")
            guard let command = (commands + hiddenCommands).first(where: { $0.name == name }) else { continue }
            let rest = Array(words.dropFirst(count))
            let options = rest.prefix { $0 != "--" }
            if options.contains("--help") || options.contains("-h") {
                return Terminal.say(HelpText(command, width: Terminal.width).text)
            }
            return try await command.run(Arguments(rest, for: command))
        }
        if ["--help", "-h"].contains(words.last), words.count == 2, let family = family(of: words) {
            return Terminal.say(family)
        }
        throw unknown(words)
    }

    /// The commands that start with the first word, such as those of `gattherd db`; `nil` if there are none.
    private static func family(of words: [String]) -> String? {
        guard let first = words.first else { return nil }
        let lines = commands.filter { $0.name.hasPrefix(first + " ") }.map { "  \($0.usage)" }
        return lines.isEmpty ? nil : "gattherd \(first): one of\n\(lines.joined(separator: "\n"))"
    }

    /// Runs `gattherd help status` as `gattherd status --help`.
    private static func help(_ words: [String]) async throws(CommandFailure) {
        if words.isEmpty { Terminal.say(help) } else { try await runCommand(words + ["--help"]) }
    }

    private static func unknown(_ words: [String]) -> CommandFailure {
        let names = commands.map { $0.name }
        if let family = family(of: words) {
            let name = words.prefix(2).joined(separator: " ")
            let nearest = words.count > 1 ? Spelling.nearest(to: name, among: names) : nil
            let question = nearest.map { "gattherd: there is no command '\(name)'; did you mean '\($0)'?\n" } ?? ""
            return CommandFailure(.usage, question + family)
        }
        let first = words.first ?? ""
        let question = Spelling.nearest(to: first, among: names).map { "did you mean '\($0)'? See" } ?? "see"
        return CommandFailure(.usage, "gattherd: there is no command '\(first)'; \(question) gattherd --help")
    }

    private static var help: String {
        let width = commands.map(\.name.count).max() ?? 0
        let lines = commands.map { "  \($0.name.padded(to: width))  \($0.summary)" }
        return """
            gattherd \(GattherdVersion.current): keeps Bluetooth LE peripherals connected, their samples in SQLite and on MQTT.

            Usage: gattherd COMMAND [arguments]

            \(lines.joined(separator: "\n"))

            gattherd COMMAND --help shows details. Results go to standard output, everything else to standard error.

            Options:
              --help     print this and end
              --version  print the version and end

            Environment:
              GATTHERD_CONFIG          the configuration, unless --config names one
              RUNTIME_DIRECTORY        the folder of the daemon's socket (default: beside history)
              STATE_DIRECTORY          the folder of history, unless history.path is set
              DBUS_SYSTEM_BUS_ADDRESS  the bus, if bluetooth.bus is 'system'
              NO_COLOR                 no colour on a terminal

            Exit codes, as in sysexits.h:
              0   done                             73  a file cannot be created
              64  the command line is wrong        74  reading or writing failed
              65  the data is wrong                75  a temporary failure: try again
              66  the input cannot be opened       78  the configuration is wrong
              69  no daemon, bus, broker or file

            Files:
              \(ConfigurationFile.standardPath)  the configuration, and gattherd.d/*.yaml beside it
            """
    }
}
