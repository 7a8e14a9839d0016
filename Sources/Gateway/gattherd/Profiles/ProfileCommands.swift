import GattherdConfig
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles
import GattherdYAML

extension CommandSpec {
    static let profileSources = [
        OptionSpec.value("config", "FILE", "use the profiles of this configuration"),
        .value("path", "PATH", "use the profiles of this folder or file"),
    ]
    static let profileWhence =
        "Without an option: the profiles of the configuration, else the installed ones."

    static let profileList = CommandSpec(
        name: "profile list",
        summary: "list the profiles, including refused ones",
        options: profileSources,
        details: profileWhence,
        run: { (arguments) throws(CommandFailure) in try ProfileCommands(arguments).list() }
    )

    static let profileShow = CommandSpec(
        name: "profile show",
        summary: "show a profile: streams, metrics, controls, tasks, its topics and rows",
        positionals: [PositionalSpec(name: "PROFILE")],
        options: profileSources,
        details: profileWhence,
        exits: [.data: "there is no such profile"],
        run: { (arguments) throws(CommandFailure) in
            Terminal.say(ProfileSummary(try ProfileCommands(arguments).profile(0)).text)
        }
    )

    static let profileDocs = CommandSpec(
        name: "profile docs",
        summary: "write a page about a profile, in Markdown",
        positionals: [PositionalSpec(name: "PROFILE")],
        options: profileSources,
        details: profileWhence,
        exits: [.data: "there is no such profile"],
        examples: ["gattherd profile docs soil-probe --path soil-probe.yaml > soil-probe.md"],
        run: { (arguments) throws(CommandFailure) in
            Terminal.say(ProfileDocument(try ProfileCommands(arguments).profile(0)).text)
        }
    )

    static let profileDecode = CommandSpec(
        name: "profile decode",
        summary: "decode a payload",
        positionals: [
            PositionalSpec(name: "PROFILE"), PositionalSpec(name: "CHARACTERISTIC"), PositionalSpec(name: "HEX"),
        ],
        options: profileSources + [
            .flag("json", "print the metrics as a JSON object"),
            .flag("explain", "show the bytes of each value; for native profiles, found by trials"),
            .value("key", "FILE", "the file with the device's bind key"),
            .value("address", "ADDRESS", "the device's address, which is part of the encryption"),
        ],
        details: """
            CHARACTERISTIC is a UUID, a stream or, for advertisements, a company's number. HEX may be several payloads of one
            connection, separated by commas: the last one is printed, with the state of those before it. For an advertisement,
            HEX is the data after the UUID or the company.
            \(profileWhence)
            """,
        json: "One object: a member for each metric.",
        exits: [.data: "the payload is rejected, or nothing decodes it"],
        examples: [
            "gattherd profile decode heart-rate 2a37 '16 48 00 04'",
            "gattherd profile decode cycling-power 2a63 '30 00 64 00' --explain",
            "gattherd profile decode bthome fcd2 '41 A47266C95F73 00112233 78237214' --key door.key "
                + "--address 54:48:E6:8F:80:A5",
        ],
        run: { (arguments) throws(CommandFailure) in try ProfileDecodeCommand(arguments).run() }
    )
}

/// The commands about profiles.
struct ProfileCommands {
    let registry: ProfileRegistry
    private let arguments: Arguments

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        if let path = arguments.value("path") {
            do throws(ProfilePathError) {
                registry = try ProfileRegistry.load(paths: [path])
            } catch {
                throw CommandFailure(.configuration, "gattherd: \(error.path): \(error.reason)")
            }
        } else {
            registry = try Self.configured(arguments.value("config"))
        }
    }

    private static func configured(_ path: String?) throws(CommandFailure) -> ProfileRegistry {
        guard path != nil || ConfigurationFile.isDefaultThere else { return InstalledProfiles.load() }
        do throws(ConfigErrors) {
            return try ConfigurationFile(path).parsed().loadProfiles()
        } catch {
            throw CommandFailure(.configuration, error.description)
        }
    }

    func list() throws(CommandFailure) {
        let rows = registry.profiles.map { profile in
            [
                profile.name, profile.title,
                Self.few(ProfileFacts(profile).served), Self.few(profile.streams.map(\.name)), profile.origin,
            ]
        }
        Terminal.say(
            TextTable(["PROFILE", "TITLE", "SERVICES", "STREAMS", "FROM"], rows).lines.joined(separator: "\n")
        )
        for refusal in registry.refusals { Terminal.printError("\(refusal.path): refused: \(refusal.advice)") }
    }

    /// Prints the refusals of a path that was given on the command line.
    func sayRefusals() {
        guard arguments.value("path") != nil else { return }
        for refusal in registry.refusals { Terminal.printError("\(refusal)") }
    }

    /// Returns the first three names in one line, and the number of the others.
    private static func few(_ names: [String]) -> String {
        let shown = names.prefix(3).joined(separator: " ")
        return names.count > 3 ? "\(shown) and \(names.count - 3) more" : shown
    }

    /// Returns the profile that a positional names.
    func profile(_ position: Int) throws(CommandFailure) -> any Profile {
        try profile(named: arguments.positional(position) ?? "")
    }

    func profile(named name: String) throws(CommandFailure) -> any Profile {
        if let profile = registry[name] { return profile }
        sayRefusals()
        let question = Spelling.nearest(to: name, among: registry.profiles.map(\.name)).map {
            "; did you mean '\($0)'?"
        }
        throw CommandFailure(
            .data,
            "gattherd: there is no profile '\(name)'\(question ?? "; see gattherd profile list")"
        )
    }
}

/// A profile on the terminal.
struct ProfileSummary {
    let text: String

    init(_ profile: any Profile) {
        let facts = ProfileFacts(profile)
        var blocks = ["\(profile.name): \(profile.title), from \(profile.origin)\n\(facts.serving)"]
        for section in facts.sections {
            let lines = TextTable(section.header.map { $0.uppercased() }, section.rows).lines.map { "  \($0)" }
            blocks.append("\(section.title)\n" + lines.joined(separator: "\n"))
        }
        blocks.append("SQL\n" + facts.queries.map { "  \($0)" }.joined(separator: "\n"))
        text = blocks.joined(separator: "\n\n")
    }
}
