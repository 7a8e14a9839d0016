import GattherdModel
package import GattherdOutputs

extension OutputFault {
    /// The fault of a statement that was not performed, with cause and remedy.
    package init(_ error: PostgresError, at url: PostgresURL) {
        let said = "\(url): \(error.detail)"
        switch error.kind {
        case .cancelled:
            self.init(.unavailable, "\(said); check whether the database is overloaded or locked")
        case .local: self.init(.unavailable, said)
        case .connection: self.init(connection: error.detail, said)
        case .server(let state): self.init(state, said)
        }
    }

    private static let readOnly = "it is a standby, or read-only: name the primary in the URL"
    private static let lack = "the server lacks space, memory or connections: make room there"

    private static let usedUp = "the numbers of series are used up: see 'Roles' in docs/fleet.md"

    private static let noConnection = "raise max_connections there, or max_client_conn of PgBouncer"

    /// libpq reports refusals at the start of a connection as texts only.
    private init(connection words: String, _ said: String) {
        let causes: [(String, String)] = [
            ("password authentication failed", "check postgres.password_file, or run: gattherd fleet add"),
            ("authentication failed for user", "write scram-sha-256 for this host into pg_hba.conf of the server"),
            ("no password supplied", "write postgres.password_file or --password-file"),
            ("no pg_hba.conf entry", "allow this host and role in pg_hba.conf of the server"),
            ("pg_hba.conf rejects", "allow this host and role in pg_hba.conf of the server"),
            ("certificate", "write postgres.ca_file or --ca-file, and use the name of the certificate in the URL"),
            ("does not exist", "create it, or correct the URL"),
            ("is not permitted to log in", "run at the centre: gattherd fleet add"),
            ("server does not support SSL", "switch on TLS at the server: ssl = on in postgresql.conf"),
            ("invalid sslmode", "correct the URL"),
            ("unsupported startup parameter", "PgBouncer: ignore_startup_parameters = extra_float_digits"),
            ("statement pooling mode", "PgBouncer: pool_mode = transaction"),
        ]
        let limits = ["too many connections", "too many clients", "connection slots", "no more connections allowed"]
        if words.contains("starting up") || words.contains("shutting down") {
            self.init(.unavailable, "\(said); it is tried again")
        } else if limits.contains(where: { words.contains($0) }) {
            self.init(.unavailable, "\(said); \(Self.noConnection)")
        } else if let remedy = causes.first(where: { words.contains($0.0) })?.1 {
            self.init(.misconfigured, "\(said); \(remedy)")
        } else if words.contains("session is read-only") {
            self.init(.unavailable, "\(said); \(Self.readOnly)")
        } else {
            self.init(.unavailable, "\(said); check whether the database runs, and the URL")
        }
    }

    private init(_ state: String, _ said: String) {
        switch state {
        case "GH001": self.init(.unavailable, "\(said); the gateway goes on from there")
        case "40001", "40P01", "55P03", "57014", "23514": self.init(.unavailable, "\(said); it is tried again")
        case "2200H": self.init(.unavailable, "\(said); \(Self.usedUp)")
        case "25006": self.init(.unavailable, "\(said); \(Self.readOnly)")
        case "42501":
            self.init(.misconfigured, "\(said); check the role in the URL, or run: gattherd fleet add")
        case "3F000":
            self.init(.misconfigured, "\(said); run at the centre: gattherd fleet init")
        case "42883", "42P01", "42703":
            self.init(.misconfigured, "\(said); run at the centre: gattherd fleet upgrade")
        default: self.init(class: state.prefix(2), said)
        }
    }

    private init(class number: Substring, _ said: String) {
        switch number {
        case "53": self.init(.unavailable, "\(said); \(Self.lack)")
        case "08", "57", "58", "XX", "25", "55", "40": self.init(.unavailable, "\(said); check the database's log")
        case "28": self.init(.misconfigured, "\(said); check the role and postgres.password_file")
        case "3D": self.init(.misconfigured, "\(said); create the database, or correct the URL")
        case "22", "23", "54": self.init(.refused, said)
        default: self.init(.misconfigured, "\(said); check the database's log, or run: gattherd fleet upgrade")
        }
    }
}

/// The reason why a statement was not performed.
package struct PostgresError: Error, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// No connection, or it was lost; it is not known whether the statement was performed.
        case connection
        /// The time has passed, or the caller was cancelled.
        case cancelled
        /// The server's answer, with its SQLSTATE.
        case server(String)
        /// The statement was not sent.
        case local
    }

    package let kind: Kind
    /// The message of the server or of libpq, on one line.
    package let detail: String

    init(_ kind: Kind, _ detail: String) {
        (self.kind, self.detail) = (kind, detail)
    }

    package var sqlState: String? {
        if case .server(let state) = kind { state } else { nil }
    }
}

extension String {
    /// The text on one line of at most 400 bytes.
    var onOneLine: String {
        split(whereSeparator: \.isWhitespace).joined(separator: " ").cut(toBytes: 400)
    }

    /// The text with U+FFFD for NUL, which no text of PostgreSQL can have.
    var withoutNUL: String {
        utf8.contains(0) ? String(String.UnicodeScalarView(unicodeScalars.map { $0 == "\0" ? "\u{FFFD}" : $0 })) : self
    }
}
