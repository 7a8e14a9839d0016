/// The TLS settings of the connection to the broker.
public struct TLSSettings: Hashable, Sendable {
    /// A version of TLS; older versions are insecure.
    public enum Version: Hashable, Sendable {
        case v12
        case v13
    }

    /// A PEM file with the authorities for the broker's certificate; `nil` for the system's.
    public var ca: String?
    /// A PEM file with the client's certificate and its intermediates, for a broker that demands one.
    public var certificate: String?
    /// A PEM file with the key of ``certificate``, without a pass phrase.
    public var key: String?
    /// The name or address that the broker's certificate must have; `nil` for the broker's host.
    public var serverName: String?
    public var minimumVersion = Version.v12

    public init() {}

    /// Reads the files as a connection would.
    ///
    /// - Throws: ``TLSFileError`` for the first file that cannot be used.
    public func check() throws(TLSFileError) {
        _ = try TLSContext(self, host: "localhost")
    }
}

/// A TLS file that cannot be used.
public struct TLSFileError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Role: Hashable, Sendable {
        case ca
        case certificate
        case key
    }

    /// The file's role; `nil` if it is none of the configured files.
    public let role: Role?
    /// The problem and its remedy.
    public let description: String
}
