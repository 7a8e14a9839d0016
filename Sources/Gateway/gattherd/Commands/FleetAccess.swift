import GattherdGateway
import GattherdPostgres

/// The central database that a command names.
struct FleetAccess {
    /// The options of all commands on a central history.
    static let options: [OptionSpec] = [
        .value("password-file", "FILE", "the first line is the password (default: PGPASSFILE, ~/.pgpass)"),
        .value("ca-file", "FILE", "the authorities that sign the server's certificate (default: the system's)"),
    ]

    let fleet: FleetDatabase
    let url: PostgresURL

    /// - Throws: ``CommandFailure`` if `text` is not the URL of a database, or the password cannot be read.
    init(_ arguments: Arguments, _ text: String) throws(CommandFailure) {
        do throws(PostgresURL.Problem) {
            url = try PostgresURL(text)
        } catch {
            let remedy = error.hasPassword ? "; use --password-file" : ""
            throw arguments.misuse("URL: \(error.text)\(remedy)")
        }
        var password: String?
        if let path = arguments.value("password-file") {
            guard let line = SecretFile(path: path).firstLine else {
                let remedy = "write it into the first line, or correct the path"
                throw CommandFailure(.noInput, "gattherd: no password can be read from '\(path)'; \(remedy)")
            }
            password = line
        }
        let client = PostgresClient(url, authority: arguments.value("ca-file")) { [password] in password }
        fleet = FleetDatabase(client, url: url)
    }
}
