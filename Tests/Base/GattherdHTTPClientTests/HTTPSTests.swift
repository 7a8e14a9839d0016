import GattherdHTTPClient
import TestKit
import Testing

/// Certificates, against openssl's own server.
@Suite(.timeLimit(.minutes(1))) struct HTTPSTests {
    private func send(
        to server: TLSServer,
        host: String = "localhost",
        _ files: HTTPTLSFiles
    ) async throws(HTTPClientError) -> HTTPClientResponse {
        try await HTTPClient(threadName: "test", files: files).send(
            HTTPClientRequest("https://\(host):\(server.port)/", body: [1])
        )
    }

    private func kind(
        to server: TLSServer,
        host: String = "localhost",
        _ files: HTTPTLSFiles
    ) async -> HTTPClientError.Kind? {
        do {
            _ = try await send(to: server, host: host, files)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test func `certificates of another authority, for another host or out of date are refused`() async throws {
        let authority = try await Authority()
        let (good, other) = (try await authority.identity(for: "DNS:localhost"), try await Authority("other"))
        let server = try await TLSServer(good, [])
        #expect(await kind(to: server, HTTPTLSFiles()) == .certificate)
        #expect(await kind(to: server, HTTPTLSFiles(ca: other.certificate)) == .certificate)
        #expect(await kind(to: server, host: "127.0.0.1", HTTPTLSFiles(ca: authority.certificate)) == .certificate)
        let expired = try await TLSServer(try await authority.identity(for: "DNS:localhost", days: -1), [])
        #expect(await kind(to: expired, HTTPTLSFiles(ca: authority.certificate)) == .certificate)
        let own = try await TLSServer(try await authority.selfSigned(), [])
        #expect(await kind(to: own, HTTPTLSFiles(ca: authority.certificate)) == .certificate)
    }

    @Test func `old versions of TLS are refused`() async throws {
        let authority = try await Authority()
        let identity = try await authority.identity(for: "DNS:localhost")
        let server = try await TLSServer(identity, ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
        #expect(await kind(to: server, HTTPTLSFiles(ca: authority.certificate)) == .tls)
    }

    @Test func `a certificate of the named authority is accepted, and the client certificate is sent`() async throws {
        let authority = try await Authority()
        let server = try await TLSServer(
            try await authority.identity(for: "DNS:localhost"),
            ["-Verify", "1", "-verify_return_error", "-CAfile", authority.certificate, "-tls1_2"]
        )
        let client = try await authority.identity(for: "DNS:gateway")
        var files = HTTPTLSFiles(ca: authority.certificate)
        #expect(await kind(to: server, files) == .tls)
        (files.certificate, files.key) = (client.certificate, client.key)
        let request = Task { [files] in await kind(to: server, files) }
        #expect(await server.line(with: "verify return:1") != nil)
        // openssl answers only GET requests.
        request.cancel()
        #expect(await request.value == .cancelled)
    }

    @Test func `files that cannot be used are named`() async throws {
        let authority = try await Authority()
        let server = try await TLSServer(try await authority.identity(for: "DNS:localhost"), [])
        #expect(await kind(to: server, HTTPTLSFiles(ca: "/nonexistent/ca.pem")) == .file)
        let files = HTTPTLSFiles(
            ca: authority.certificate,
            certificate: "/nonexistent/c.pem",
            key: "/nonexistent/k.pem"
        )
        #expect(await kind(to: server, files) == .file)
    }

    @Test func `a port that does not speak TLS is recognised`() async throws {
        let server = try ScriptedServer(greeting: "HTTP/1.1 400 Bad Request\r\n\r\n") { _ in [.close] }
        let request = HTTPClientRequest("https://127.0.0.1:\(server.port)/", body: [1])
        let error = await #expect(throws: HTTPClientError.self) {
            try await HTTPClient(threadName: "test").send(request)
        }
        #expect(error?.kind == .tls)
    }
}
