import GattherdProcess
import Glibc

/// A private certificate authority, made with the `openssl` command.
public final class Authority: Sendable {
    /// PEM files of a certificate and its key.
    public struct Identity: Sendable {
        public let certificate: String
        public let key: String
        /// The folder of the files.
        let folder: TemporaryFolder
    }

    /// `openssl` failed.
    public struct Failed: Error {}

    private static let newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]

    private let folder: TemporaryFolder
    private let own: Identity

    /// The authority's certificate.
    public var certificate: String { own.certificate }

    public init(_ name: String = "laboratory") async throws {
        folder = try TemporaryFolder()
        own = try await Self.selfSigned(name, in: folder)
    }

    /// Issues a certificate.
    ///
    /// - Parameters:
    ///   - names: The subject alternative names in OpenSSL's format, for example `DNS:localhost`.
    ///   - days: The validity in days from now. With -1 it expired yesterday.
    /// - Returns: The files.
    /// - Throws: ``Failed``.
    public func identity(for names: String..., days: Int = 1) async throws -> Identity {
        let file = folder.file("\(names.joined(separator: "-").filter { $0.isLetter || $0.isNumber })-\(days)")
        let request = [
            "req", "-new", "-subj", "/CN=broker", "-addext", "subjectAltName=" + names.joined(separator: ","),
        ]
        try await Self.openssl(request + Self.newKey + ["-keyout", file + ".key", "-out", file + ".csr"])
        try await Self.openssl([
            "x509", "-req", "-in", file + ".csr", "-CA", own.certificate, "-CAkey", own.key, "-copy_extensions",
            "copy", "-days", "\(days)", "-out", file + ".pem",
        ])
        return Identity(certificate: file + ".pem", key: file + ".key", folder: folder)
    }

    /// Makes a self-signed certificate.
    public func selfSigned() async throws -> Identity {
        try await Self.selfSigned("localhost", in: folder)
    }

    private static func selfSigned(_ name: String, in folder: TemporaryFolder) async throws -> Identity {
        let file = folder.file("self-\(name)")
        let request = ["req", "-x509", "-days", "1", "-subj", "/CN=\(name)", "-addext", "subjectAltName=DNS:\(name)"]
        try await openssl(request + newKey + ["-keyout", file + ".key", "-out", file + ".pem"])
        return Identity(certificate: file + ".pem", key: file + ".key", folder: folder)
    }

    /// Runs `openssl` and waits for its end.
    public static func openssl(_ arguments: [String]) async throws {
        guard try await Programs.run("openssl", arguments).0 == 0 else { throw Failed() }
    }
}

/// An `openssl s_server` with configurable handshakes, which does not speak MQTT.
public final class TLSServer: Sendable {
    public let port: Int
    private let child: ChildProcess
    private let lines: LineReader

    /// Starts the server and waits until it listens on loopback.
    public init(_ identity: Authority.Identity, _ arguments: [String]) async throws {
        port = try Broker.freePort()
        let (lines, writer) = try LineReader.pipe()
        // Without -www, openssl ends with its input.
        let fixed = ["-oL", "openssl", "s_server", "-accept", "127.0.0.1:\(port)", "-www"]
        let files = ["-cert", identity.certificate, "-key", identity.key]
        child = try ChildProcess(
            "stdbuf",
            fixed + files + arguments,
            output: .descriptor(writer),
            errors: .descriptor(writer)
        )
        close(writer)
        self.lines = lines
        while let line = lines.next() { if line == "ACCEPT" { return } }
        throw Authority.Failed()
    }

    deinit {
        child.signal(SIGKILL)
    }

    /// Reads the output up to a line that contains `words` and returns the line.
    public func line(with words: String) async -> String? {
        for await line in lines where line.contains(words) { return line }
        return nil
    }
}
