import CPostgres
import Glibc

/// The URL of a database: `postgresql://user@host:port/database?option=value`, as libpq reads it.
package struct PostgresURL: Hashable, Sendable {
    /// The reason why a text is not such a URL.
    package struct Problem: Error, Hashable, Sendable {
        /// Complete for people.
        package let text: String
        /// True if the text has a password.
        package let hasPassword: Bool
    }

    private static let systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

    /// The options with a server that libpq takes from the environment, unless the URL has them.
    private static let variables = [("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"), ("service", "PGSERVICE")]

    private let options: [String: String]

    /// - Throws: ``Problem`` if libpq does not understand the text, or it has a password or no database.
    package init(_ text: String) throws(Problem) {
        try self.init(text) { name in unsafe getenv(name).map { unsafe String(cString: $0) } }
    }

    /// - Parameters:
    ///   - text: The URL.
    ///   - variable: Returns a variable of the environment.
    /// - Throws: ``Problem``.
    init(_ text: String, variable: (String) -> String?) throws(Problem) {
        guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") else {
            // Another form of libpq has words such as password=….
            let hasPassword = Self.mayHavePassword(text) || text.lowercased().contains("passw")
            throw Problem(text: "it does not begin with postgresql://", hasPassword: hasPassword)
        }
        var words: UnsafeMutablePointer<CChar>?
        guard let first = unsafe PQconninfoParse(text, &words) else {
            let reason = unsafe words.map { unsafe String(cString: $0).onOneLine } ?? "memory is short"
            unsafe PQfreemem(words)
            throw Problem(text: reason, hasPassword: Self.mayHavePassword(text))
        }
        defer { unsafe PQconninfoFree(first) }
        var options = unsafe Self.read(first)
        for (option, name) in Self.variables where options[option] == nil {
            options[option] = variable(name).flatMap { $0.isEmpty ? nil : $0 }
        }
        self.options = options
        if options["password"] != nil || options["sslpassword"] != nil {
            throw Problem(text: "it has a password", hasPassword: true)
        }
        guard options["dbname"] != nil else { throw Problem(text: "it has no database", hasPassword: false) }
    }

    /// True if a text that libpq does not understand may have a password, misspelt or not.
    private static func mayHavePassword(_ text: String) -> Bool {
        guard !text.contains("@") else { return true }
        let options = text.split(separator: "?", maxSplits: 1).dropFirst().joined().split(separator: "&")
        return options.contains { option in
            let name = option.prefix { $0 != "=" }.lowercased()
            return name.contains("%") || name.contains("pw") || (name.contains("pas") && name != "passfile")
        }
    }

    private static func read(_ first: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
        var options: [String: String] = [:]
        var next = unsafe first
        while let keyword = unsafe next.pointee.keyword {
            if let value = unsafe next.pointee.val, unsafe value.pointee != 0 {
                unsafe options[String(cString: keyword)] = unsafe String(cString: value)
            }
            unsafe next += 1
        }
        return options
    }

    package var database: String { options["dbname"] ?? "" }

    /// The hosts with their ports, and the database: equal for two URLs with other options or another order of hosts.
    var target: String {
        let ports = (options["port"] ?? "").split(separator: ",", omittingEmptySubsequences: false)
        let places = hosts.enumerated().map { index, host in
            let port = ports.count == 1 ? ports.first : ports.dropFirst(index).first
            return "\(host.lowercased()):\(port.flatMap { $0.isEmpty ? nil : $0 } ?? "5432")"
        }
        return ([options["service"] ?? ""] + places.sorted() + [database]).joined(separator: "/")
    }

    /// True if no host is reached through a network.
    package var isLocal: Bool { !isInServiceFile && hosts.allSatisfy { Self.isLocal($0) } }

    /// True if the host may be in a service file of libpq.
    private var isInServiceFile: Bool { options["service"] != nil && hosts.allSatisfy(\.isEmpty) }

    private var hosts: [String] {
        let text = options["hostaddr"] ?? options["host"] ?? ""
        return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private static func isLocal(_ host: String) -> Bool {
        host.isEmpty || host.hasPrefix("/") || host == "localhost" || host == "::1"
            || (host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." })
    }

    /// True if a server cannot pretend to be another one.
    package var isVerified: Bool { isLocal || options["sslmode", default: "verify-full"] == "verify-full" }

    /// The options of a connection: those of the URL, and safe ones where it has none.
    ///
    /// Only startup options that PgBouncer accepts; no session settings.
    func options(user: String?, password: String?, authority: String?) -> [(name: String, value: String)] {
        var all = options
        var defaults = [
            "connect_timeout": "10", "keepalives_idle": "15", "keepalives_interval": "5", "keepalives_count": "3",
            "tcp_user_timeout": "20000", "gssencmode": "disable",
        ]
        if hosts.count > 1 { defaults["target_session_attrs"] = "read-write" }
        if !isLocal {
            defaults["sslmode"] = "verify-full"
            if unsafe access(Self.systemAuthorities, R_OK) == 0 { defaults["sslrootcert"] = Self.systemAuthorities }
        }
        if let user { defaults["user"] = user }
        all.merge(defaults) { own, _ in own }
        if let authority { all["sslrootcert"] = authority }
        if let password { all["password"] = password }
        (all["client_encoding"], all["application_name"]) = ("UTF8", "gattherd")
        return all.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}

/// The URL as text for people, without options.
extension PostgresURL: CustomStringConvertible {
    package var description: String {
        let ports = options["port"].map { ":\($0)" } ?? ""
        let names = hosts.filter { !$0.isEmpty }.joined(separator: ",")
        return names.isEmpty ? "the local database '\(database)'" : "\(names)\(ports)/\(database)"
    }
}
