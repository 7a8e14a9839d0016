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
}

/// The commands about profiles.
struct ProfileCommands {
    let registry: ProfileRegistry
    /// The configuration whose profiles are used; `nil` without one.
    let configuration: Configuration?
    private let arguments: Arguments

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        if let path = arguments.value("path") {
            configuration = nil
            do throws(ProfilePathError) {
                registry = try ProfileRegistry.load(paths: [path])
            } catch {
                throw CommandFailure(.configuration, "gattherd: \(error.path): \(error.reason)")
            }
        } else {
            (configuration, registry) = try Self.configured(arguments.value("config"))
        }
    }

    private static func configured(
        _ path: String?
    ) throws(CommandFailure) -> (Configuration?, ProfileRegistry) {
        guard path != nil || ConfigurationFile.isDefaultThere else { return (nil, InstalledProfiles.load()) }
        do throws(ConfigErrors) {
            let configuration = try ConfigurationFile(path).parsed()
            return (configuration, try configuration.loadProfiles())
        } catch {
            throw CommandFailure(.configuration, error.description)
        }
    }

    func list() throws(CommandFailure) {
        let rows = registry.profiles.map { profile in
            [
                profile.name, profile.title.shortened(to: Self.widest),
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

    /// The widest cell of a list, in characters.
    private static let widest = 44

    /// Returns the first names, at most three, as one narrow line, and the number of the others.
    static func few(_ names: [String]) -> String {
        var shown = names.prefix(1).joined().shortened(to: widest)
        var count = min(1, names.count)
        for name in names.dropFirst().prefix(2) {
            guard shown.count + 1 + name.count <= widest else { break }
            shown += " " + name
            count += 1
        }
        return names.count > count ? "\(shown) and \(names.count - count) more" : shown
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
