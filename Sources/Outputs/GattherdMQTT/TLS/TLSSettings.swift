/// How the connection to the broker is secured.
public struct TLSSettings: Hashable, Sendable {
    /// A version of TLS; older ones than these are not safe.
    public enum Version: Hashable, Sendable {
        case v12
        case v13
    }

    /// A PEM file with the authorities that may have signed the broker's certificate; `nil`: the system's.
    public var ca: String?
    /// A PEM file with our certificate, and those of the authorities between, for a broker that demands one.
    public var certificate: String?
    /// A PEM file with the key of ``certificate``, without a pass phrase.
    public var key: String?
    /// The name or address that the broker's certificate must be for; `nil`: the broker's host.
    public var serverName: String?
    public var minimumVersion = Version.v12

    public init() {}

    /// Reads the files as a connection would.
    ///
    /// - Throws: ``TLSFileError`` for the first that cannot be used.
    public func check() throws(TLSFileError) {
        _ = try TLSContext(self, host: "localhost")
    }
}

/// A file that TLS needs cannot be used.
public struct TLSFileError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Role: Hashable, Sendable {
        case ca
        case certificate
        case key
    }

    /// `nil` when it is none of our files.
    public let role: Role?
    /// What is wrong and what to do.
    public let description: String
}
