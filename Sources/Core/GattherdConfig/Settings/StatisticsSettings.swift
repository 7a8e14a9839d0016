import GattherdModel

/// The address of an HTTP server: `http://host:port/path` or `https://…`.
package struct ServerURL: Hashable, Sendable {
    package let usesTLS: Bool
    package let host: String
    package let port: UInt16?
    /// The path without a slash at its end; empty for most servers.
    package let path: String

    /// Parses a URL; `nil` if it has user information, a query or a fragment, or is invalid.
    package init?(_ text: String) {
        usesTLS = text.hasPrefix("https://")
        guard usesTLS || text.hasPrefix("http://") else { return nil }
        let rest = text.dropFirst(usesTLS ? 8 : 7)
        let authority = rest.prefix { $0 != "/" }
        guard let (host, port) = HostAndPort.read(authority) else { return nil }
        var path = rest[authority.endIndex...]
        while path.hasSuffix("/") { path.removeLast() }
        guard path.utf8.count <= 1024, path.utf8.allSatisfy({ Slug.isAllowed($0) || "/.~%".utf8.contains($0) }) else {
            return nil
        }
        (self.host, self.port, self.path) = (host, port, String(path))
    }

    /// The host and the port as in the URL.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return name + (port.map { ":\($0)" } ?? "")
    }

    /// True if requests cross a network without encryption.
    package var isExposed: Bool { !usesTLS && !isLoopback }

    private var isLoopback: Bool {
        host == "localhost" || host == "::1" || (host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." })
    }
}

extension ServerURL: CustomStringConvertible {
    package var description: String { "\(usesTLS ? "https" : "http")://\(authority)\(path)" }
}

/// The section `mqtt.home_assistant.statistics`.
package struct StatisticsSettings: Hashable, Sendable {
    package var url: Located<ServerURL>
    /// The file with the access token in its first line.
    package var tokenFile: Located<String>
    /// The files for TLS, in PEM form.
    package var ca: Located<String>?
    package var certificate: Located<String>?
    package var key: Located<String>?

    package init(url: Located<ServerURL>, tokenFile: Located<String>) {
        (self.url, self.tokenFile) = (url, tokenFile)
    }

    /// The token file, and the files for TLS if it is used.
    package var files: [NamedFile] {
        let tls = url.value.usesTLS ? NamedFile.tls(ca: ca, certificate: certificate, key: key) : []
        return [NamedFile(tokenFile, .secret("token", isReadAgain: true))] + tls
    }
}
