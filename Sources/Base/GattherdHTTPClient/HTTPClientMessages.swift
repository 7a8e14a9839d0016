/// A POST request to one server.
public struct HTTPClientRequest: Sendable {
    public var url: String
    /// The headers by name, without those that state the length of the body.
    public var headers: [String: String] = [:]
    public var body: [UInt8]
    /// The names of the response's headers to keep.
    public var wantedHeaders: [String] = []
    /// The longest time for name lookup, connecting and TLS.
    public var connectTimeout = Duration.seconds(10)
    /// The longest time from the start to the end of the response.
    public var timeout = Duration.seconds(25)

    public init(_ url: String, body: [UInt8]) {
        self.url = url
        self.body = body
    }
}

/// The response to a request, whatever its status.
public struct HTTPClientResponse: Hashable, Sendable {
    public var status: Int
    /// The wanted headers that the response has, by the names of the request; at most 1 KiB each.
    public var headers: [String: String] = [:]
    /// The pause that the server asks for.
    public var retryAfter: Duration?
    /// The start of the body, at most 4 KiB.
    public var body: [UInt8] = []

    public init(status: Int, headers: [String: String] = [:], retryAfter: Duration? = nil, body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.retryAfter = retryAfter
        self.body = body
    }
}

/// The files for TLS, in PEM form; `nil` for the system's authorities and for no client certificate.
public struct HTTPTLSFiles: Hashable, Sendable {
    public var ca: String?
    public var certificate: String?
    public var key: String?

    public init(ca: String? = nil, certificate: String? = nil, key: String? = nil) {
        self.ca = ca
        self.certificate = certificate
        self.key = key
    }
}

/// The reason why a request has no response.
public struct HTTPClientError: Error, Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// The host's name has no address.
        case unresolved
        /// No connection could be made.
        case unreachable
        /// The time has passed.
        case timeout
        /// The server's certificate is not trusted, or is for another name.
        case certificate
        /// TLS could not start for another reason.
        case tls
        /// A file of ``HTTPTLSFiles`` cannot be used.
        case file
        /// The server does not speak HTTP.
        case notHTTP
        /// The server does not speak WebSocket, or violates its rules.
        case notWebSocket
        /// The connection ended before the response did.
        case interrupted
        /// The task was cancelled.
        case cancelled
        /// Too many earlier requests hang, the request is invalid, or memory is short.
        case local
    }

    public let kind: Kind
    /// The cause, for people.
    public let detail: String

    public init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }
}

extension HTTPClientError: CustomStringConvertible {
    public var description: String { detail }
}
