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
    ///   - names: Names of the server, in addition to its addresses and `localhost`.
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

/// The token of clients that may write.
///
/// Its description is `***`.
package struct AccessToken: Hashable, Sendable {
    /// The minimum length in characters: shorter tokens could be guessed.
    package static let shortest = 16

    private let bytes: [UInt8]

    /// Returns `nil` for fewer than ``shortest`` characters, and for characters other than visible ASCII.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count >= Self.shortest, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        self.bytes = bytes
    }

    /// Compares in a time that depends only on `candidate`.
    func matches(_ candidate: some StringProtocol) -> Bool {
        var difference = candidate.utf8.count ^ bytes.count
        for (index, byte) in candidate.utf8.enumerated() {
            difference |= Int(byte ^ bytes[index % bytes.count])
        }
        return difference == 0
    }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "***" }
    package var debugDescription: String { "***" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The `Host` header of a request.
struct RequestHost: Hashable {
    /// The name in lower case without the port; an IPv6 address is in brackets.
    let name: String
    /// The whole header in lower case.
    let authority: String

    /// Returns `nil` unless the header is a host with an optional port.
    init?(_ header: String?) {
        guard let header, !header.isEmpty else { return nil }
        authority = header.lowercased()
        let name: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            name = authority[...end]
        } else {
            name = authority.prefix { $0 != ":" }
        }
        let port = authority[name.endIndex...]
        guard port.isEmpty || port.first == ":" && port.dropFirst().allSatisfy(\.isASCIIDigit) else { return nil }
        self.name = String(name.last == "." ? name.dropLast() : name)
    }

    /// True for an IP address, which DNS rebinding cannot forge.
    var isAddress: Bool {
        if name.hasPrefix("[") { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { $0.allSatisfy(\.isASCIIDigit) && UInt8($0) != nil }
    }

    /// True for names and addresses of the loopback interface.
    var isLoopback: Bool {
        name == "localhost" || name.hasSuffix(".localhost") || name == "[::1]" || isAddress && name.hasPrefix("127.")
    }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
