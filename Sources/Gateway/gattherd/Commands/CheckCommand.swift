import GattherdConfig
import GattherdGateway
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let check = CommandSpec(
        name: "check",
        summary: "check the configuration and its profiles",
        positionals: [PositionalSpec(name: "FILE", isOptional: true)],
        options: [.flag("json", "print a JSON array of the problems"), ConfigurationFile.option],
        details: """
            FILE may be written with or without --config. Prints each error with its line and column; warnings
            do not change the exit code. An unusable profile is an error here; the daemon logs it
            and runs without it.
            """,
        json: """
            [{"file", "line", "column", "severity", "kind", "message"}]

            "severity" is error or warning. "line" and "column" start at 1 and are null for a whole file. "kind" is a stable
            word for programs; "message" is text for people.
            """,
        exits: [.configuration: "the configuration, or a profile, is wrong"],
        examples: ["gattherd check gattherd.yaml", "gattherd check gattherd.yaml --json"],
        run: { (arguments) throws(CommandFailure) in try CheckCommand(arguments).run() }
    )
}

/// Reads a configuration as the daemon does, and prints its errors.
struct CheckCommand {
    private let file: ConfigurationFile
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(CommandFailure) {
        let named = [arguments.positional(0), arguments.value("config")].compactMap(\.self)
        guard named.count < 2 else {
            throw CommandSpec.check.misuse("there are two files, '\(named[0])' and '\(named[1])'; name one")
        }
        file = ConfigurationFile(named.first)
        isJSON = arguments.has("json")
    }

    func run() throws(CommandFailure) {
        let (mistakes, summary) = inspect()
        let findings = file.unreadFiles.map { CheckFinding($0) } + mistakes
        if isJSON {
            Terminal.say(CheckFinding.json(findings))
        } else {
            for finding in findings { Terminal.printError(finding.description) }
            if let summary { Terminal.say(summary) }
        }
        if findings.contains(where: \.isError) { throw CommandFailure(.configuration, nil) }
    }

    private func inspect() -> ([CheckFinding], summary: String?) {
        do throws(ConfigErrors) {
            let configuration = try file.parsed()
            let access = ServiceAccess(file)
            let registry = try configuration.loadProfiles(for: access?.profileAccount ?? .current)
            let findings = CheckFinding.all(configuration, registry, access)
            guard !findings.contains(where: \.isError) else { return (findings, nil) }
            let counts = [(configuration.devices.count, "device"), (configuration.enrol.count, "enrol rule")]
            let words = counts.filter { $0.0 > 0 || $0.1 == "device" } + [(registry.profiles.count, "profile")]
            let summary = "\(file.path): good: \(words.map { counted($0.0, $0.1) }.joined(separator: ", "))"
            return (
                findings,
                summary
                    + (configuration.emptinessAdvice(file).map { "\nno devices: nothing is connected; " + $0 } ?? "")
            )
        } catch {
            return (error.errors.map { CheckFinding($0) }, nil)
        }
    }

    private func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
}

/// One finding of `check`.
struct CheckFinding {
    /// The finding as text: one line, and the line of the file if known.
    let description: String
    let isError: Bool
    let file: String
    private let line: Int?
    private let column: Int?
    private let kind: String
    private let message: String

    init(_ error: ConfigError) {
        description = error.description
        isError = error.severity == .error
        file = error.file
        line = error.place?.line
        column = error.place?.column
        kind = error.problem.kind
        message = error.problem.description
    }

    /// Creates the finding about a mistake in a profile's text.
    private init(_ refusal: ProfileRefusal, line: Int) {
        isError = true
        file = refusal.path
        self.line = line
        column = refusal.column
        kind = ConfigProblem.profile("").kind
        message = refusal.advice
        description = "\(file):\(line):\(refusal.column ?? 1): error: \(message)"
    }

    /// Creates the finding about a refused profile without a configuration.
    init(_ refusal: ProfileRefusal) {
        if let line = refusal.line {
            self.init(refusal, line: line)
        } else {
            self.init(ConfigError(.profile(refusal.advice), file: refusal.path))
        }
    }

    /// Creates the finding about a refused profile, with a place in its text or in the configuration.
    init(_ refusal: ProfileRefusal, of configuration: Configuration) {
        if let line = refusal.line {
            self.init(refusal, line: line)
        } else {
            let named = configuration.profiles.paths?.first { path in
                refusal.path == path.value
                    || refusal.path.hasPrefix(path.value.hasSuffix("/") ? path.value : path.value + "/")
            }
            let isFile = refusal.path.hasSuffix(".so") || refusal.path.hasSuffix(".yaml")
            let noun = isFile ? "profile" : "folder"
            let problem = ConfigProblem.profile("the \(noun) \(refusal.path) is refused: \(refusal.advice)")
            self.init(named?.place.map { ConfigError(problem, at: $0) } ?? ConfigError(problem, file: refusal.path))
        }
    }

    /// Returns the findings about a valid configuration: names that no profile has, files, and refused profiles.
    static func all(
        _ configuration: Configuration,
        _ registry: ProfileRegistry,
        _ access: ServiceAccess?
    ) -> [CheckFinding] {
        let files = configuration.secretFindings + (access?.findings(configuration) ?? [])
        let disk = DiskCheck(configuration.history, .installed()).folderProblem.map {
            ConfigError(.file("\($0.text); \($0.remedy ?? "")"), about: configuration.history.path)
        }
        let old = configuration.oldKeys.map(\.finding)
        let all = old + configuration.mismatches(with: registry) + files + [disk].compactMap(\.self)
        return all.map { CheckFinding($0) }
            + registry.refusals.map { CheckFinding($0, of: configuration) }
    }

    /// Returns a JSON array of findings.
    static func json(_ findings: [CheckFinding]) -> String {
        JSONWriter.text { writer in
            writer.array(findings) { $1.writeJSON(to: &$0) }
        }
    }

    private func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("file")
        writer.string(file)
        writer.key("line")
        writer.optional(line) { $0.integer($1) }
        writer.key("column")
        writer.optional(column) { $0.integer($1) }
        writer.key("severity")
        writer.string(isError ? "error" : "warning")
        writer.key("kind")
        writer.string(kind)
        writer.key("message")
        writer.string(message)
        writer.endObject()
    }
}
