import GattherdConfig
import GattherdGateway

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
