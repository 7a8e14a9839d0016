import GattherdConfig
import GattherdGateway

extension ConfigurationFile {
    static let option = OptionSpec.value("config", "FILE", "the configuration (default: \(standardPath))")

    /// The file that `--config` names, else the standard one.
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
}
