/// The URL of an HTTP server: `http://host:port/path` or `https://…`.
public struct ServerURL: Hashable, Sendable {
    public let usesTLS: Bool
    public let host: String
    public let port: UInt16?
    /// The path without a slash at its end; empty for most servers.
    public let path: String

    /// Parses a URL; `nil` if it has user information, a query or a fragment, or is invalid.
    public init?(_ text: String) {
        usesTLS = text.hasPrefix("https://")
        guard usesTLS || text.hasPrefix("http://") else { return nil }
        let rest = text.dropFirst(usesTLS ? 8 : 7)
        let authority = rest.prefix { $0 != "/" }
        guard let (host, port) = HostAndPort.read(authority) else { return nil }
        var path = rest[authority.endIndex...]
        while path.hasSuffix("/") { path.removeLast() }
        guard path.utf8.count <= 1024, path.utf8.allSatisfy({ Self.isPathByte($0) }) else { return nil }
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

    /// True for the bytes that RFC 3986 allows in a path.
    private static func isPathByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "/-._~%!$&'()*+,;=:@".utf8.contains(byte)
        }
    }
}

extension ServerURL: CustomStringConvertible {
    public var description: String { "\(usesTLS ? "https" : "http")://\(authority)\(path)" }
}
