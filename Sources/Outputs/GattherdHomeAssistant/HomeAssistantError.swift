import GattherdHTTPClient

/// The reason why statistics could not be imported, with its remedy.
package struct HomeAssistantError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        /// Home Assistant cannot be reached, is starting, or fails.
        case unavailable
        /// The URL, the token or a file for TLS must be corrected.
        case misconfigured
        /// Home Assistant refuses the content of one request.
        case refused
        /// Home Assistant refuses the statistics of all entities.
        case refusesAll
        /// The history cannot be read.
        case history
        /// The import was cancelled.
        case cancelled
    }

    package let kind: Kind
    /// The reason and the remedy, for people.
    package let description: String

    package init(_ kind: Kind, _ description: String) {
        (self.kind, self.description) = (kind, description)
    }
}

extension HomeAssistantError {
    /// The error for a connection that failed.
    init(_ error: HTTPClientError, _ server: HomeAssistantServer) {
        let words = "no connection to \(server.url): \(error.detail)"
        switch error.kind {
        case .unresolved: self.init(.unavailable, "\(words); check the host in the URL, and DNS")
        case .unreachable: self.init(.unavailable, "\(words); check whether Home Assistant runs, and the URL")
        case .timeout, .interrupted, .local: self.init(.unavailable, words)
        case .certificate:
            self.init(.misconfigured, "\(words); name the authority in tls.ca, or use the certificate's host")
        case .tls: self.init(.misconfigured, "\(words); check that the port of the URL is one for https")
        case .file: self.init(.misconfigured, "\(words); check the files in tls")
        case .notHTTP, .notWebSocket: self.init(.misconfigured, "\(words); check that the URL is Home Assistant's")
        case .cancelled: self.init(.cancelled, words)
        }
    }
}
