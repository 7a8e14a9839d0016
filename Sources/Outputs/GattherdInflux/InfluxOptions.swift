public import GattherdHTTPClient

/// The options of the sink: the server, and the form of the points.
public struct InfluxOptions: Hashable, Sendable {
    /// The database to write to; it also selects the API.
    public enum Database: Hashable, Sendable {
        /// InfluxDB 1 and VictoriaMetrics: `/write`.
        case database(String, retentionPolicy: String?)
        /// InfluxDB 2 and 3: `/api/v2/write`. InfluxDB 3 needs no organisation.
        case bucket(String, organisation: String?)
    }

    /// The gateway's name, a tag of all points.
    public var gateway: String
    public var url: InfluxURL
    public var database: Database
    public var credentials: InfluxCredentials?
    public var measurement = MeasurementName.stream
    /// True if the bodies of requests are compressed.
    public var compresses = true
    public var tls = HTTPTLSFiles()

    public init(gateway: String, url: InfluxURL, database: Database) {
        self.gateway = gateway
        self.url = url
        self.database = database
    }

    /// The URL of the write request.
    public var writeURL: String {
        switch database {
        case .database(let name, let policy):
            url.appending("/write", query: [("db", name), ("rp", policy), ("precision", "ns")])
        case .bucket(let name, let organisation):
            url.appending("/api/v2/write", query: [("org", organisation), ("bucket", name), ("precision", "ns")])
        }
    }
}

/// A token, or a user with a password; always prints as `***`.
public enum InfluxCredentials: Hashable, Sendable {
    case token(String)
    case password(user: String, String)
}

extension InfluxCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var debugDescription: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The URL of a server: `http://host:port/path` or `https://…`.
public struct InfluxURL: Hashable, Sendable {
    public let usesTLS: Bool
    public let host: String
    public let port: UInt16?
    /// The path before the API's, without a slash at its end; empty for most servers.
    public let path: String

    /// Parses a URL; `nil` if it has user information, a query or a fragment, or is invalid.
    public init?(_ text: String) {
        guard let (usesTLS, rest) = Self.withoutScheme(text) else { return nil }
        let authority = rest.prefix { $0 != "/" }
        guard let (host, port) = Self.hostAndPort(authority) else { return nil }
        var path = rest[authority.endIndex...]
        while path.hasSuffix("/") { path.removeLast() }
        guard path.utf8.count <= 1024, path.utf8.allSatisfy({ Self.isPathByte($0) }) else { return nil }
        self.usesTLS = usesTLS
        self.host = host
        self.port = port
        self.path = String(path)
    }

    /// True if the host is the gateway's own.
    public var isLoopback: Bool {
        host == "localhost" || host == "::1" || (host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." })
    }

    /// True if requests cross a network without encryption.
    var isExposed: Bool { !usesTLS && !isLoopback }

    /// Returns the URL of an API with a query; members without a value are omitted.
    func appending(_ api: String, query: [(name: String, value: String?)]) -> String {
        let pairs = query.compactMap { name, value in value.map { "\(name)=\(Self.percentEncoded($0))" } }
        let isComplete = path.hasSuffix(api)
        return "\(self)\(isComplete ? "" : api)?\(pairs.joined(separator: "&"))"
    }

    private static func withoutScheme(_ text: String) -> (usesTLS: Bool, rest: Substring)? {
        if text.hasPrefix("http://") { return (false, text.dropFirst(7)) }
        return text.hasPrefix("https://") ? (true, text.dropFirst(8)) : nil
    }

    private static func hostAndPort(_ text: Substring) -> (host: String, port: UInt16?)? {
        let isBracketed = text.hasPrefix("[")
        let host = isBracketed ? text.dropFirst().prefix { $0 != "]" } : text.prefix { $0 != ":" }
        var rest = text[host.endIndex...]
        if isBracketed, rest.popFirst() == nil { return nil }
        let isValid = host.utf8.allSatisfy { isBracketed ? isAddressByte($0) : isHostByte($0) }
        guard isValid, (1...253).contains(host.utf8.count) else { return nil }
        guard let colon = rest.popFirst() else { return (String(host), nil) }
        guard colon == ":", rest.utf8.allSatisfy({ isDigit($0) }), let port = UInt16(rest), port > 0 else { return nil }
        return (String(host), port)
    }

    private static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        return text.utf8.reduce(into: "") { result, byte in
            if isHostByte(byte) {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += ["%", digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// True for the bytes that RFC 3986 calls unreserved, without `~`.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"),
            UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: isDigit(byte)
        }
    }

    private static func isAddressByte(_ byte: UInt8) -> Bool { isHostByte(byte) || ":%".utf8.contains(byte) }
    private static func isPathByte(_ byte: UInt8) -> Bool { isHostByte(byte) || "/:~%+,;=!$&'()*@".utf8.contains(byte) }
}

extension InfluxURL: CustomStringConvertible {
    public var description: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(usesTLS ? "https" : "http")://\(name)\(port.map { ":\($0)" } ?? "")\(path)"
    }
}
