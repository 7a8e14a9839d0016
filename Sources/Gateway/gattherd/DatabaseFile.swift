import GattherdConfig
import GattherdGateway

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
