/// The access rules of the HTTP server.
///
/// Pages of other sites cannot use the API: a request's `Host` must be a name of this server, and its `Origin`, if
/// present, the same. Requests that write need the token, and so do all requests from other hosts.
package struct AccessRules: Sendable {
    /// The reason for refusing a request.
    enum Refusal: Hashable {
        case unknownHost
        case foreignOrigin
        case tokenMissing
        case tokenWrong
        /// The request needs a token, and none is configured.
        case noToken
    }

    /// The clients that a resource is for.
    enum Audience {
        /// All clients: the files of the dashboard contain no data of the gateway.
        case everybody
        /// Clients on this host, and clients with the token.
        case readers
        /// Clients with the token.
        case writers
    }

    private let isLoopback: Bool
    private let names: Set<String>
    private let token: @Sendable () -> AccessToken?

    /// - Parameters:
    ///   - isLoopback: True if only this host can reach the server.
    ///   - names: Names of the server, besides its addresses and `localhost`.
    ///   - token: Returns the token of writers and of other hosts, for each request. Without one they are refused.
    package init(
        isLoopback: Bool,
        names: Set<String>,
        token: @autoclosure @escaping @Sendable () -> AccessToken?
    ) {
        self.isLoopback = isLoopback
        self.names = Set(names.map { $0.lowercased() })
        self.token = token
    }

    /// Returns the reason for refusing a request; `nil` if it is allowed.
    func refusal(of request: HTTPRequest, for audience: Audience) -> Refusal? {
        guard let host = RequestHost(request.headers["host"]),
            host.isAddress || host.isLoopback || names.contains(host.name)
        else { return .unknownHost }
        guard isSameOrigin(request, host) else { return .foreignOrigin }
        switch audience {
        case .everybody: return nil
        case .readers: return isLocal(request, host) ? nil : refusal(ofTokenIn: request)
        case .writers: return refusal(ofTokenIn: request)
        }
    }

    /// True unless a browser reports another site as the origin; links from other sites are allowed.
    private func isSameOrigin(_ request: HTTPRequest, _ host: RequestHost) -> Bool {
        if let origin = request.headers["origin"]?.lowercased() {
            return ["http://", "https://"].contains { origin == $0 + host.authority }
        }
        let isForeign = ["cross-site", "same-site"].contains(request.headers["sec-fetch-site"])
        return !isForeign || request.headers["sec-fetch-mode"] == "navigate"
    }

    /// True if the client is on this host.
    ///
    /// A proxy for other hosts sets a header or uses another name.
    private func isLocal(_ request: HTTPRequest, _ host: RequestHost) -> Bool {
        let isForwarded = ["forwarded", "x-forwarded-for", "x-forwarded-host", "via"].contains {
            request.headers[$0] != nil
        }
        return isLoopback && host.isLoopback && !isForwarded
    }

    private func refusal(ofTokenIn request: HTTPRequest) -> Refusal? {
        guard let token = token() else { return .noToken }
        let words = request.headers["authorization"]?.split(separator: " ") ?? []
        guard words.count == 2, words[0].lowercased() == "bearer" else { return .tokenMissing }
        return token.matches(words[1]) ? nil : .tokenWrong
    }
}

extension AccessRules.Refusal {
    /// The response to the client.
    var response: HTTPResponse {
        switch self {
        case .unknownHost: .error(421, "unknown host name; add it to http.hosts")
        case .foreignOrigin: .error(403, "requests from pages of other sites are refused")
        case .tokenMissing:
            .error(401, "send the token: Authorization: Bearer …").with("WWW-Authenticate", #"Bearer realm="gattherd""#)
        case .tokenWrong:
            .error(401, "the token is wrong")
                .with("WWW-Authenticate", #"Bearer realm="gattherd", error="invalid_token""#)
        case .noToken: .error(403, "this needs a token, and none is configured: set http.token_file")
        }
    }
}
