/// The reason why there is no MQTT session, or why one ended.
public struct BrokerFault: Error, Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// No broker was reached, or it did not answer.
        case unreachable
        /// There was a session, and it ended.
        case lost
        /// The broker answered, but is out of resources.
        case busy
        /// The broker rejects the user name or the password.
        case credentials
        /// The broker rejects the protocol version or the client id.
        case session
        /// TLS failed: a certificate, a file or a version.
        case security
    }

    public let kind: Kind
    /// The cause and the remedy, for display.
    public let detail: String

    public init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// True if the configuration must change before a retry can succeed.
    public var needsSomebody: Bool {
        switch kind {
        case .credentials, .session, .security: true
        case .unreachable, .lost, .busy: false
        }
    }
}
