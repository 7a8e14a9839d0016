public import GattherdConfig
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
    public var url: ServerURL
    public var database: Database
    public var credentials: InfluxCredentials?
    public var measurement = MeasurementName.stream
    /// True if the bodies of requests are compressed.
    public var compresses = true
    public var tls = HTTPTLSFiles()

    public init(gateway: String, url: ServerURL, database: Database) {
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

extension ServerURL {
    /// Returns the URL of an API with a query; members without a value are omitted.
    fileprivate func appending(_ api: String, query: [(name: String, value: String?)]) -> String {
        let pairs = query.compactMap { name, value in value.map { "\(name)=\(Self.percentEncoded($0))" } }
        let isComplete = path.hasSuffix(api)
        return "\(self)\(isComplete ? "" : api)?\(pairs.joined(separator: "&"))"
    }

    private static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        return text.utf8.reduce(into: "") { result, byte in
            if isUnreserved(byte) {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += ["%", digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }

    /// True for the bytes that RFC 3986 calls unreserved, without `~`.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
