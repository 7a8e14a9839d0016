import FoundationEssentials
import GattherdProcess
import GattherdSync
import Glibc

/// A private PostgreSQL on a loopback port, which can be stopped, killed and suspended.
///
/// The superuser `postgres` needs no password; all others do.
public final class PostgresServer: Sendable {
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    public let port: Int
    private let folder: TemporaryFolder
    private let settings: [String]
    private let daemon = Locked<ChildProcess?>(nil)

    /// Prepares a server, which starts with ``start()``.
    ///
    /// - Parameters:
    ///   - settings: Further settings, for example `max_connections=20`.
    ///   - identity: The certificate for TLS; `nil` for none.
    /// - Throws: ``Failure`` if its files cannot be made.
    public init(settings: [String] = [], identity: Authority.Identity? = nil) async throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        port = try Broker.freePort()
        let template = try await Self.template()
        let copy = try await ChildProcess("cp", ["-a", template, folder.file("data")]).wait()
        guard copy == .exited(0) else { throw Failure(description: "\(template) cannot be copied") }
        try folder.write(Self.access, to: "data/pg_hba.conf")
        self.settings = try settings + (identity.map { try Self.present($0, in: folder) } ?? [])
        try Unprivileged.own(folder.path)
        try Unprivileged.own(folder.file("data/pg_hba.conf"))
    }

    /// Prepares an asynchronous streaming standby of a running server.
    public init(standbyOf primary: PostgresServer) async throws {
        guard let programs = Self.programs else { throw Failure(description: "no programs") }
        folder = try TemporaryFolder()
        port = try Broker.freePort()
        settings = []
        try Unprivileged.own(folder.path)
        let arguments = [
            "-D", folder.file("data"), "-R", "-X", "stream", "-c", "fast", "-h", "127.0.0.1", "-p", "\(primary.port)",
            "-U", "postgres",
        ]
        let status = try await Unprivileged.process("\(programs)/pg_basebackup", arguments, output: .null).wait()
        guard status == .exited(0) else { throw Failure(description: "pg_basebackup: \(status)") }
    }

    private static let access = """
        local all all trust
        host all postgres 127.0.0.1/32 trust
        host replication postgres 127.0.0.1/32 trust
        host all all 127.0.0.1/32 scram-sha-256

        """

    /// Copies a certificate and its key to where the server may read them, and returns the settings for TLS.
    private static func present(_ identity: Authority.Identity, in folder: TemporaryFolder) throws -> [String] {
        for (from, name) in [(identity.certificate, "server.pem"), (identity.key, "server.key")] {
            try folder.write(String(contentsOfFile: from, encoding: .utf8), to: name)
            guard unsafe chmod(folder.file(name), 0o600) == 0 else { throw Failure(description: "\(name): no mode") }
            try Unprivileged.own(folder.file(name))
        }
        return ["ssl=on", "ssl_cert_file=\(folder.file("server.pem"))", "ssl_key_file=\(folder.file("server.key"))"]
    }

    /// Creates a tablespace on a small disk, for all later objects in `database`.
    public func useTablespace(on disk: SmallFileSystem, database: String) async throws {
        try Unprivileged.own(disk.folder.path)
        try Unprivileged.own(disk.path)
        try await rows("CREATE TABLESPACE small LOCATION '\(disk.path)'")
        try await rows("ALTER DATABASE \(database) SET default_tablespace = small")
    }

    /// Ends the server; until it has ended, its files cannot be removed.
    deinit {
        guard let child = daemon.withLock({ $0 }) else { return }
        child.signal(SIGCONT)
        child.signal(SIGQUIT)
        for _ in 0..<500 where child.exitStatus == nil { usleep(10_000) }
    }

    /// The folder of PostgreSQL's programs; `nil` if it is not installed and not unpacked.
    public static let programs: String? = {
        let folder = "/usr/lib/postgresql/15/bin"
        let candidates = [folder, UnpackedServers.folder.map { $0 + folder }].compactMap(\.self)
        return candidates.first { FileManager.default.isExecutableFile(atPath: $0 + "/postgres") }
    }()

    /// The files of a new cluster, made once for all servers.
    private static func template() async throws -> String {
        guard let programs else { throw Failure(description: "PostgreSQL is missing; run: make test-servers") }
        let path = Checkout.root.appending(path: ".build/servers/postgres-15-\(getuid())").path
        if FileManager.default.fileExists(atPath: path) { return path }
        let folder = try TemporaryFolder()
        try Unprivileged.own(folder.path)
        let made = folder.file("data")
        let arguments = ["-D", made, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
        let status = try await Unprivileged.process("\(programs)/initdb", arguments, output: .null).wait()
        guard status == .exited(0) else { throw Failure(description: "initdb: \(status)") }
        try FileManager.default.createDirectory(
            atPath: Checkout.root.appending(path: ".build/servers").path,
            withIntermediateDirectories: true
        )
        // Another test may have been faster.
        let copy = path + ".\(Int.random(in: 1...1_000_000_000))"
        _ = try await ChildProcess("cp", ["-a", made, copy]).wait()
        if unsafe rename(copy, path) != 0 { try? FileManager.default.removeItem(atPath: copy) }
        return path
    }

    /// Starts or restarts the server and waits until it accepts connections.
    public func start() async throws {
        guard let programs = Self.programs else { throw Failure(description: "no programs") }
        let options = [
            "listen_addresses=127.0.0.1", "port=\(port)", "unix_socket_directories=\(folder.path)", "fsync=off",
            "full_page_writes=off", "shared_buffers=16MB", "jit=off", "max_wal_size=64MB", "logging_collector=off",
        ]
        let arguments = ["-D", folder.file("data")] + (options + settings).flatMap { ["-c", $0] }
        // After a kill, the old processes hold the memory for a moment.
        while true {
            let (lines, writer) = try LineReader.pipe()
            let child = Result {
                try Unprivileged.process("\(programs)/postgres", arguments, output: .descriptor(writer))
            }
            close(writer)
            let process = try child.get()
            daemon.withLock { $0 = process }
            var said = ""
            for await line in lines {
                said += line + "\n"
                if line.contains("database system is ready to accept") { return }
            }
            guard said.contains("shared memory block") || said.contains("lock file") else {
                throw Failure(description: "postgres ended: \(said)")
            }
        }
    }

    /// The process that started the others; `nil` before the start.
    public var pid: Int32? { daemon.withLock { $0?.pid } }

    /// Ends the server without waiting for its clients.
    public func stop() async {
        await end(by: SIGINT)
    }

    /// Kills the server, as a crash would.
    public func kill() async {
        await end(by: SIGKILL)
    }

    /// Suspends all processes that accept connections: nothing new is answered until ``thaw()``.
    public func freeze() {
        daemon.withLock { $0?.signal(SIGSTOP) }
    }

    public func thaw() {
        daemon.withLock { $0?.signal(SIGCONT) }
    }

    private func end(by signal: Int32) async {
        guard let child = daemon.withLock({ $0 }) else { return }
        child.signal(SIGCONT)
        child.signal(signal)
        _ = await child.wait()
    }

    /// Runs statements by `psql` as the superuser: an independent reader.
    ///
    /// - Returns: The rows with their columns as text; NULL is `NULL`.
    @discardableResult
    public func rows(_ sql: String, database: String = "postgres") async throws -> [[String]] {
        guard let programs = Self.programs else { throw Failure(description: "no programs") }
        let arguments = [
            "-X", "-q", "-A", "-t", "-F", "\t", "-P", "null=NULL", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
            "\(port)",
            "-U", "postgres", "-d", database, "-c", "SET default_transaction_read_only = off", "-c", sql,
        ]
        let errors = folder.file("errors-\(Int.random(in: 1...1_000_000_000))")
        let (code, text) = try await Programs.run("\(programs)/psql", arguments, errors: errors)
        guard code == 0 else {
            throw Failure(description: "psql: \((try? String(contentsOfFile: errors, encoding: .utf8)) ?? "")")
        }
        return text.split(separator: "\n").map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// Returns the only column of the only row.
    public func value(_ sql: String, database: String = "postgres") async throws -> String {
        let rows = try await rows(sql, database: database)
        guard rows.count == 1, let value = rows[0].first else { throw Failure(description: "not one row: \(rows)") }
        return value
    }
}

/// A PgBouncer in transaction mode in front of a server.
public final class PgBouncer: Sendable {
    public let port: Int
    private let folder: TemporaryFolder
    private let daemon = Locked<ChildProcess?>(nil)

    public static let program: String? = {
        let candidates = ["/usr/sbin/pgbouncer", UnpackedServers.folder.map { $0 + "/usr/sbin/pgbouncer" }]
        return candidates.compactMap(\.self).first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    /// - Parameters:
    ///   - server: The server.
    ///   - database: The database.
    ///   - users: The names and passwords of the roles.
    ///   - size: The connections to the server for each role.
    /// - Throws: An error if its files cannot be made.
    public init(
        _ server: PostgresServer,
        database: String,
        users: [(name: String, password: String)],
        size: Int = 1
    ) throws {
        folder = try TemporaryFolder()
        port = try Broker.freePort()
        let text = """
            [databases]
            \(database) = host=127.0.0.1 port=\(server.port)
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = \(port)
            unix_socket_dir =
            auth_type = scram-sha-256
            auth_file = \(folder.file("users"))
            pool_mode = transaction
            default_pool_size = \(size)
            server_reset_query_always = 1
            max_client_conn = 200

            """
        try folder.write(text, to: "settings")
        try folder.write(users.map { "\"\($0.name)\" \"\($0.password)\"\n" }.joined(), to: "users")
        for name in ["", "settings", "users"] { try Unprivileged.own(folder.file(name)) }
    }

    deinit {
        daemon.withLock { $0?.signal(SIGKILL) }
    }

    public func start() async throws {
        guard let program = Self.program else { throw PostgresServer.Failure(description: "no pgbouncer") }
        let libraries = (UnpackedServers.folder ?? "") + "/" + UnpackedServers.libraries
        let (lines, writer) = try LineReader.pipe()
        let child = Result {
            try Unprivileged.process(
                "env",
                ["LD_LIBRARY_PATH=\(libraries)", program, folder.file("settings")],
                output: .descriptor(writer)
            )
        }
        close(writer)
        let process = try child.get()
        daemon.withLock { $0 = process }
        for await line in lines where line.contains("process up") { return }
        throw PostgresServer.Failure(description: "pgbouncer has ended")
    }
}

/// Programs that refuse to run as root.
enum Unprivileged {
    private static let nobody: uid_t = 65_534

    static func process(_ program: String, _ arguments: [String], output: ChildProcess.Output) throws -> ChildProcess {
        let prefix =
            getuid() == 0
            ? ["--pdeathsig=QUIT", "--reuid=\(nobody)", "--regid=\(nobody)", "--clear-groups", program] : []
        return try ChildProcess(
            prefix.isEmpty ? program : "setpriv",
            prefix + arguments,
            output: output,
            errors: output
        )
    }

    /// Gives a file to the user of the programs.
    static func own(_ path: String) throws {
        guard getuid() == 0 else { return }
        guard unsafe chown(path, nobody, nobody) == 0 else {
            throw PostgresServer.Failure(description: "\(path) cannot be given away")
        }
    }
}
