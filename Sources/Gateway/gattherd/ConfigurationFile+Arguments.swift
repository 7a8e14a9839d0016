import GattherdConfig
import GattherdGateway
import GattherdProfiles

extension ConfigurationFile {
    static let option = OptionSpec.value(
        "config",
        "FILE",
        "the configuration (default: $\(variable), else \(standardPath))"
    )

    /// Creates the file that `--config` names, else the standard one.
    init(_ arguments: Arguments) {
        self.init(arguments.value("config"))
    }

    /// Reads and parses all files.
    ///
    /// - Throws: ``CommandFailure`` with every error of the files.
    func load() throws(CommandFailure) -> Configuration {
        do throws(ConfigErrors) {
            return try parsed()
        } catch {
            throw CommandFailure(.configuration, error.description)
        }
    }

    /// Returns the configuration with new or changed files, if `gattherd check` would find no mistake.
    ///
    /// Prints the warnings about these files.
    ///
    /// - Parameters:
    ///   - changes: The new or changed files.
    ///   - loaded: The profiles; `nil` to load those of the new configuration.
    /// - Returns: The configuration.
    /// - Throws: ``CommandFailure`` with all errors.
    func checked(
        with changes: [ConfigSource],
        _ loaded: ProfileRegistry? = nil
    ) throws(CommandFailure) -> Configuration {
        let access = ServiceAccess(self)
        let next: Configuration
        let registry: ProfileRegistry
        do throws(ConfigErrors) {
            next = try parsed(with: changes)
            registry = if let loaded { loaded } else { try next.loadProfiles(for: access?.profileAccount ?? .current) }
        } catch {
            throw CommandFailure(.configuration, error.description)
        }
        let findings = CheckFinding.all(next, registry, access)
        let errors = findings.filter(\.isError)
        guard errors.isEmpty else {
            throw CommandFailure(.configuration, errors.map(\.description).joined(separator: "\n"))
        }
        let names = Set(changes.map(\.name))
        for warning in findings where names.contains(warning.file) { Terminal.printError(warning.description) }
        return next
    }

    /// Reads the files for a command that needs the path of history; warns about other errors.
    ///
    /// - Throws: ``CommandFailure`` with all errors of the files if the path may be wrong.
    func loadForHistory() throws(CommandFailure) -> Configuration {
        let (configuration, errors) = parsedLeniently()
        guard let first = errors.first else { return configuration }
        guard configuration.history.path.place != nil || !errors.contains(where: \.problem.mayHideKeys) else {
            throw CommandFailure(.configuration, ConfigErrors(errors).description)
        }
        let line = first.description.split(separator: "\n").first ?? ""
        Terminal.printError("gattherd: the configuration has errors; the daemon would not start\n\(line)")
        return configuration
    }
}

extension ConfigProblem {
    /// True if the parsed configuration may lack keys of the file.
    fileprivate var mayHideKeys: Bool {
        switch self {
        case .unreadable, .syntax, .wrongKind, .invalid, .setTwice, .undefinedVariable, .badSubstitution: true
        default: false
        }
    }
}

/// The database of a command: that of the configuration, or that of `--database`.
enum DatabaseFile {
    static let options = [
        ConfigurationFile.option,
        OptionSpec.value("database", "FILE", "the SQLite file, instead of the configured one"),
    ]

    static func path(_ arguments: Arguments) throws(CommandFailure) -> String {
        if let database = arguments.value("database") { return database }
        return try ConfigurationFile(arguments).loadForHistory().history.path.value
    }
}
