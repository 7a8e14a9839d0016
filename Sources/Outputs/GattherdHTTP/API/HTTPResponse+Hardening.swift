extension HTTPResponse {
    /// The response with headers that restrict browsers: content policy, framing, caching.
    var hardened: HTTPResponse {
        var response = self
        response.headers += Self.protection
        if !headers.contains(where: { $0.name == "Cache-Control" }) {
            response.headers.append(Header("Cache-Control", "no-store"))
        }
        return response
    }

    private static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    ]

    private static let protection = [
        Header("Content-Security-Policy", policy.joined(separator: "; ")),
        Header("Cross-Origin-Opener-Policy", "same-origin"),
        Header("Cross-Origin-Resource-Policy", "same-origin"),
        Header("Referrer-Policy", "no-referrer"),
        Header("X-Content-Type-Options", "nosniff"),
        Header("X-Frame-Options", "DENY"),
    ]
}
