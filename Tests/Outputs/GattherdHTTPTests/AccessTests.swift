import Testing

@testable import GattherdHTTP

@Suite struct AccessTests {
    private struct Row: CustomTestStringConvertible {
        let testDescription: String
        let audience: AccessRules.Audience
        let headers: [String: String]
        let refusal: AccessRules.Refusal?

        init(
            _ name: String,
            _ headers: [String: String],
            _ refusal: AccessRules.Refusal? = nil,
            for audience: AccessRules.Audience = .readers
        ) {
            testDescription = name
            self.audience = audience
            self.headers = headers
            self.refusal = refusal
        }
    }

    private static let secret = "0123456789abcdef"
    private static let bearer = ["authorization": "Bearer " + secret]

    private func refusal(_ row: Row, isLoopback: Bool, hasToken: Bool = true) -> AccessRules.Refusal? {
        let token = hasToken ? AccessToken(Self.secret) : nil
        let rules = AccessRules(isLoopback: isLoopback, names: ["Gateway.lan"], token: token)
        return rules.refusal(of: HTTPRequest(.get, "/", headers: row.headers), for: row.audience)
    }

    private static let local = [
        Row("an address", ["host": "127.0.0.1:8780"]),
        Row("another address of loopback", ["host": "127.9.9.9"]),
        Row("an IPv6 address", ["host": "[::1]:8780"]),
        Row("a name of loopback", ["host": "LocalHost:8780"]),
        Row("a subdomain of loopback", ["host": "x.localhost."]),
        Row("our own name is for others", ["host": "gateway.lan"], .tokenMissing),
        Row("our own name with the token", ["host": "gateway.lan"].merging(bearer) { $1 }),
        Row("another name (DNS rebinding)", ["host": "evil.example"], .unknownHost),
        Row("another name with the token", ["host": "evil.example"].merging(bearer) { $1 }, .unknownHost),
        Row("what looks like loopback", ["host": "127.0.0.1.evil.example"], .unknownHost),
        Row("what ends like loopback", ["host": "evil-localhost"], .unknownHost),
        Row("no host", [:], .unknownHost),
        Row("an empty host", ["host": ""], .unknownHost),
        Row("two hosts", ["host": "127.0.0.1, evil.example"], .unknownHost),
        Row("a port that is none", ["host": "127.0.0.1:80x"], .unknownHost),
        Row("a bracket that does not end", ["host": "[::1"], .unknownHost),
        Row("numbers too large for an address", ["host": "127.0.0.256"], .unknownHost),
        Row("our own page", ["host": "127.0.0.1:8780", "origin": "http://127.0.0.1:8780"]),
        Row("our own page behind TLS", ["host": "localhost", "origin": "https://LOCALHOST"]),
        Row(
            "our own page behind a proxy on another port ($http_host of nginx)",
            ["host": "gateway.lan:8443", "origin": "https://gateway.lan:8443"].merging(bearer) { $1 }
        ),
        Row(
            "our own page behind a proxy that drops its port ($host of nginx)",
            ["host": "gateway.lan", "origin": "https://gateway.lan:8443"].merging(bearer) { $1 },
            .foreignOrigin
        ),
        Row("another site's page", ["host": "127.0.0.1:8780", "origin": "http://evil.example"], .foreignOrigin),
        Row("a page of another port", ["host": "127.0.0.1:8780", "origin": "http://127.0.0.1:81"], .foreignOrigin),
        Row("a page without a site", ["host": "127.0.0.1:8780", "origin": "null"], .foreignOrigin),
        Row("a script of another site", ["host": "localhost", "sec-fetch-site": "cross-site"], .foreignOrigin),
        Row("a script of a neighbour", ["host": "localhost", "sec-fetch-site": "same-site"], .foreignOrigin),
        Row(
            "a link of another site",
            ["host": "localhost", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"]
        ),
        Row("our own script", ["host": "localhost", "sec-fetch-site": "same-origin"]),
        Row("what a proxy passes on", ["host": "localhost", "x-forwarded-for": "192.0.2.1"], .tokenMissing),
        Row("to write, without the token", ["host": "localhost"], .tokenMissing, for: .writers),
        Row("to write, with it", ["host": "localhost"].merging(bearer) { $1 }, for: .writers),
        Row(
            "a wrong token",
            ["host": "localhost", "authorization": "Bearer 0123456789abcdeg"],
            .tokenWrong,
            for: .writers
        ),
        Row(
            "the token's beginning",
            ["host": "localhost", "authorization": "Bearer 0123456"],
            .tokenWrong,
            for: .writers
        ),
        Row("an empty token", ["host": "localhost", "authorization": "Bearer "], .tokenMissing, for: .writers),
        Row(
            "more than the token",
            ["host": "localhost", "authorization": "bearer \(secret)0"],
            .tokenWrong,
            for: .writers
        ),
        Row(
            "the token twice over",
            ["host": "localhost", "authorization": "bearer \(secret)\(secret)"],
            .tokenWrong,
            for: .writers
        ),
        Row("another scheme", ["host": "localhost", "authorization": "Basic " + secret], .tokenMissing, for: .writers),
        Row(
            "another site's page with the token",
            ["host": "localhost", "origin": "http://evil.example"].merging(bearer) { $1 },
            .foreignOrigin,
            for: .writers
        ),
        Row("the page itself", ["host": "gateway.lan"], for: .everybody),
        Row("the page under another name", ["host": "evil.example"], .unknownHost, for: .everybody),
    ]

    @Test(arguments: local) private func `on loopback, only writers need the token`(row: Row) {
        #expect(refusal(row, isLoopback: true) == row.refusal)
    }

    private static let remote = [
        Row("to read at our address", ["host": "192.0.2.7:8780"], .tokenMissing),
        Row("to read at our name", ["host": "gateway.lan:8780"], .tokenMissing),
        Row("to read from this host", ["host": "localhost:8780"], .tokenMissing),
        Row("to read with the token", ["host": "192.0.2.7"].merging(bearer) { $1 }),
        Row("to write with the token", ["host": "192.0.2.7"].merging(bearer) { $1 }, for: .writers),
        Row("the page itself", ["host": "192.0.2.7"], for: .everybody),
        Row("another name", ["host": "evil.example"].merging(bearer) { $1 }, .unknownHost),
    ]

    @Test(arguments: remote) private func `from other hosts, everything but the page needs the token`(row: Row) {
        #expect(refusal(row, isLoopback: false) == row.refusal)
    }

    @Test func `without a configured token, writers and other hosts are refused`() {
        let (here, there) = (["host": "localhost"], ["host": "gateway.lan"])
        #expect(refusal(Row("", here), isLoopback: true, hasToken: false) == nil)
        #expect(refusal(Row("", here, for: .writers), isLoopback: true, hasToken: false) == .noToken)
        #expect(refusal(Row("", there), isLoopback: true, hasToken: false) == .noToken)
    }

    @Test(arguments: ["", "short", "0123456789abcde", "0123456789 abcdef", "0123456789abcdeä", "0123456789abcde\t"])
    func `a short token, or one with invisible characters, is refused`(text: String) {
        #expect(AccessToken(text) == nil)
    }

    @Test func `a token is not printed`() throws {
        let token = try #require(AccessToken(Self.secret))
        #expect("\(token) \(String(reflecting: token)) \(dumped(token))".contains(Self.secret) == false)
    }

    private func dumped(_ token: AccessToken) -> String {
        var text = ""
        dump([token], to: &text)
        return text
    }
}
