import GattherdConfig
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let check = CommandSpec(
        name: "check",
        summary: "check the configuration and its profiles",
        positionals: [PositionalSpec(name: "FILE", isOptional: true)],
        options: [.flag("json", "print a JSON array of what is wrong")],
        details: """
            Prints each mistake with its line and column. Exit code 78 when there is one; warnings alone are no failure.
            A profile that is refused is a warning: the daemon goes on without it.
            """,
        examples: ["gattherd check /etc/gattherd/gattherd.yaml"],
        run: { (arguments) throws(Failure) in try CheckCommand(arguments).run() }
    )
}

/// Reads a configuration as the daemon would, and says what is wrong.
struct CheckCommand {
    private let file: ConfigurationFile
    private let isJSON: Bool

    init(_ arguments: Arguments) {
        file = ConfigurationFile(arguments.positional(0))
        isJSON = arguments.has("json")
    }

    func run() throws(Failure) {
        let (findings, refusals, summary) = inspect()
        if isJSON {
            Console.say(json(findings, refusals))
        } else {
            for finding in findings { Console.complain(finding.description) }
            for refusal in refusals { Console.complain("\(refusal.path): warning: profile refused: \(refusal.advice)") }
            if let summary { Console.say(summary) }
        }
        if findings.contains(where: { $0.severity == .error }) { throw Failure(.configuration, nil) }
    }

    private func inspect() -> ([ConfigError], [ProfileRefusal], String?) {
        do throws(ConfigErrors) {
            let parsed = try file.parsed()
            let registry = try parsed.configuration.loadProfiles()
            let mismatches = parsed.configuration.mismatches(with: registry)
            let counts = "\(parsed.configuration.devices.count) devices, \(registry.profiles.count) profiles"
            let summary = mismatches.isEmpty ? "\(file.path): good: \(counts)" : nil
            return (parsed.warnings + mismatches, registry.refusals, summary)
        } catch {
            return (error.warnings + error.errors, [], nil)
        }
    }

    private func json(_ findings: [ConfigError], _ refusals: [ProfileRefusal]) -> String {
        let octets = JSONWriter.octets { writer in
            writer.beginArray()
            for finding in findings {
                let place = finding.place
                write(
                    (finding.file, place?.line, place?.column, finding.severity.rawValue, finding.problem.kind),
                    finding.problem.description,
                    to: &writer
                )
            }
            for refusal in refusals {
                let row = (refusal.path, refusal.line, refusal.column, "warning", "profile_refused")
                write(row, refusal.advice, to: &writer)
            }
            writer.endArray()
        }
        return String(decoding: octets, as: UTF8.self)
    }

    private func write(
        _ row: (file: String, line: Int?, column: Int?, severity: String, kind: String),
        _ message: String,
        to writer: inout JSONWriter
    ) {
        writer.beginObject()
        writer.key("file")
        writer.string(row.file)
        writer.key("line")
        writer.optional(row.line) { $0.integer($1) }
        writer.key("column")
        writer.optional(row.column) { $0.integer($1) }
        writer.key("severity")
        writer.string(row.severity)
        writer.key("kind")
        writer.string(row.kind)
        writer.key("message")
        writer.string(message)
        writer.endObject()
    }
}

extension ProfileRefusal {
    /// The reason, and what to do about it.
    var advice: String { remedy.map { "\(reason). \($0)" } ?? reason }
}
