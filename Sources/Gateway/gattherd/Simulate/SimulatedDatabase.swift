import FoundationEssentials
import GattherdPostgres
import GattherdSync
import Glibc

/// A throwaway PostgreSQL of a simulation, with the history of all its gateways.
///
/// The server listens on a socket in a folder that only its user and root may enter. PostgreSQL refuses to run as root;
/// the user is `nobody` then.
struct SimulatedDatabase: Sendable {
    private static let nobody: uid_t = 65_534
    private static let name = "fleet"

    /// The private folder with socket, log and data.
    private let folder: String
    /// The folder of PostgreSQL's programs, which the user of the server may read.
    private let programs: String

    /// - Parameter programs: The folder with `initdb` and `postgres`.
    /// - Throws: ``CommandFailure`` if they are not there, or no folder can be made.
    init(programs: String) throws(CommandFailure) {
        guard FileManager.default.isExecutableFile(atPath: programs + "/postgres") else {
            throw CommandFailure(.unavailable, "gattherd simulate: there is no PostgreSQL in \(programs)")
        }
        let parent = Terminal.environment("TMPDIR") ?? "/tmp"
        var template = Array("\(parent)/gattherd-pg-XXXXXX".utf8CString)
        guard let made = unsafe mkdtemp(&template) else {
            let reason = SystemError.current.description
            let problem = "no folder for PostgreSQL can be created in \(parent): \(reason)"
            throw CommandFailure(.cannotCreate, "gattherd simulate: \(problem)")
        }
        folder = unsafe String(cString: made)
        self.programs = try Self.readable(programs, copyTo: folder)
        guard getuid() != 0 || (unsafe chown(folder, Self.nobody, Self.nobody)) == 0 else {
            throw CommandFailure(.cannotCreate, "gattherd simulate: \(folder) cannot be given to another user")
        }
    }

    /// Returns the folder of the programs, or of copies if the server's user cannot get there.
    private static func readable(_ programs: String, copyTo folder: String) throws(CommandFailure) -> String {
        let path = programs.hasPrefix("/") ? programs : FileManager.default.currentDirectoryPath + "/" + programs
        guard getuid() == 0, !path.hasPrefix("/usr/lib/"), let root = path.firstRange(of: "/lib/postgresql/")
        else { return path }
        let (prefix, version) = (path[..<root.lowerBound], path[root.upperBound...].prefix { $0 != "/" })
        do {
            for part in ["lib/postgresql/\(version)", "share/postgresql/\(version)"] {
                let above = folder + "/" + part.prefix(upTo: part.lastIndex(of: "/") ?? part.endIndex)
                try FileManager.default.createDirectory(atPath: above, withIntermediateDirectories: true)
                try FileManager.default.copyItem(atPath: "\(prefix)/\(part)", toPath: "\(folder)/\(part)")
            }
        } catch {
            throw CommandFailure(.cannotCreate, "gattherd simulate: PostgreSQL cannot be copied to \(folder): \(error)")
        }
        return "\(folder)/lib/postgresql/\(version)/bin"
    }

    /// Returns the URL for a user; `nil` for the default user of the reader.
    func url(user: String? = nil) -> String {
        let host = folder.replacing("%", with: "%25").replacing("/", with: "%2F")
        return "postgresql://\(user.map { $0 + "@" } ?? "")\(host)/\(Self.name)"
    }

    /// The command that makes the files of the server.
    var preparation: (program: String, arguments: [String]) {
        let files = ["-D", folder + "/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
        return command("initdb", files)
    }

    /// The command that runs the server.
    var server: (program: String, arguments: [String]) {
        let settings = ["listen_addresses=", "unix_socket_directories=\(folder)", "fsync=off", "shared_buffers=32MB"]
        return command("postgres", ["-D", folder + "/data"] + settings.flatMap { ["-c", $0] })
    }

    private func command(_ name: String, _ arguments: [String]) -> (program: String, arguments: [String]) {
        let program = programs + "/" + name
        guard getuid() == 0 else { return (program, arguments) }
        let user = ["--pdeathsig=INT", "--reuid=\(Self.nobody)", "--regid=\(Self.nobody)", "--clear-groups"]
        return ("setpriv", user + [program] + arguments)
    }

    /// Makes the database, the schema and the roles of the gateways.
    ///
    /// - Throws: `FleetDatabase.Failure` while the server starts.
    func prepare(_ gateways: [String]) async throws(FleetDatabase.Failure) {
        let server = try Self.database(url(user: "postgres").replacing("/\(Self.name)", with: "/postgres"))
        if try await server.rows("SELECT FROM pg_database WHERE datname = '\(Self.name)'").isEmpty {
            _ = try await server.rows("CREATE DATABASE \(Self.name)")
        }
        let fleet = try Self.database(url(user: "postgres"))
        _ = try await fleet.install(isNew: true)
        for gateway in gateways { _ = try await fleet.add(gateway: gateway) }
    }

    private static func database(_ text: String) throws(FleetDatabase.Failure) -> FleetDatabase {
        do throws(PostgresURL.Problem) {
            let url = try PostgresURL(text)
            return FleetDatabase(PostgresClient(url), url: url)
        } catch {
            throw FleetDatabase.Failure(error.text)
        }
    }

    /// The commands that show the history of all gateways.
    var directions: String {
        let url = url(user: "postgres")
        return """
            One PostgreSQL has the history of all gateways:
              \(OwnProgram.words) fleet status '\(url)'
              \(OwnProgram.words) fleet devices '\(url)'
              \(OwnProgram.words) history --fleet '\(url)' --since 1m
              \(programs)/psql '\(url)' -c 'SELECT * FROM gattherd.receptions ORDER BY ts DESC LIMIT 10'

            """
    }

    /// Removes the folder with its content.
    func remove() {
        try? FileManager.default.removeItem(atPath: folder)
    }
}
