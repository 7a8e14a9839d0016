/// Who may do what.
///
/// A page of another site cannot use the console: the request's `Host` must be a name of this host, and its `Origin`,
/// where there is one, the same. Writing needs the token, and so does everything that does not come from this host.
public struct AccessRules: Sendable {
    /// Why a request is not carried out.
    enum Refusal: Hashable {
        case unknownHost
        case foreignOrigin
        case tokenMissing
        case tokenWrong
        /// It needs a token, and nobody has set one.
        case noToken
    }

    /// Whom a part of the console is for.
    enum Audience {
        /// The page itself, which says nothing about the gateway.
        case everybody
        /// Whoever is at this host, or has the token.
        case readers
        /// Whoever has the token.
        case writers
    }

    private let isLoopback: Bool
    private let names: Set<String>
    private let token: @Sendable () -> AccessToken?

    /// - Parameters:
    ///   - isLoopback: Only this host can reach the server.
    ///   - names: What the server may be called besides by its addresses and `localhost`.
    ///   - token: What writers and strangers have to show; without one they can do nothing. Read for each request.
    public init(
        isLoopback: Bool,
        names: Set<String>,
        token: @autoclosure @escaping @Sendable () -> AccessToken?
    ) {
        self.isLoopback = isLoopback
        self.names = Set(names.map { $0.lowercased() })
        self.token = token
    }

    /// `nil` when the request may be carried out.
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

    /// A browser says where a request comes from; links from elsewhere may lead here.
    private func isSameOrigin(_ request: HTTPRequest, _ host: RequestHost) -> Bool {
        if let origin = request.headers["origin"]?.lowercased() {
            return ["http://", "https://"].contains { origin == $0 + host.authority }
        }
        let isForeign = ["cross-site", "same-site"].contains(request.headers["sec-fetch-site"])
        return !isForeign || request.headers["sec-fetch-mode"] == "navigate"
    }

    /// A proxy on this host that serves others says so, or calls us by another name.
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
    /// What the client is told.
    var response: HTTPResponse {
        switch self {
        case .unknownHost: .error(421, "this is not the name of this server; add it to http.hosts")
        case .foreignOrigin: .error(403, "requests from pages of other sites are refused")
        case .tokenMissing:
            .error(401, "send the token: Authorization: Bearer …").with("WWW-Authenticate", #"Bearer realm="gattherd""#)
        case .tokenWrong:
            .error(401, "the token is wrong")
                .with("WWW-Authenticate", #"Bearer realm="gattherd", error="invalid_token""#)
        case .noToken: .error(403, "this needs a token, and there is none: set http.token_file")
        }
    }
}
