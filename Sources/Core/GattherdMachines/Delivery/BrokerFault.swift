/// Why there is no session with the broker, or none any more.
public struct BrokerFault: Error, Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// No broker was reached, or it did not answer.
        case unreachable
        /// There was a session, and it ended.
        case lost
        /// The broker answered, but has no room or time for us now.
        case busy
        /// The broker knows us not: user or password.
        case credentials
        /// The broker will never take this session: the protocol's version, the client id.
        case session
        /// TLS: the broker's certificate or ours, the files of it, the versions.
        case security
    }

    public let kind: Kind
    /// What happened and what to do, for people.
    public let detail: String

    public init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// Trying again soon cannot help; somebody must change something first.
    public var needsSomebody: Bool {
        switch kind {
        case .credentials, .session, .security: true
        case .unreachable, .lost, .busy: false
        }
    }
}
