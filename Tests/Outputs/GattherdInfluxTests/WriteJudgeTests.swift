import GattherdConfig
import GattherdHTTPClient
import GattherdOutputs
import Testing

@testable import GattherdInflux

struct WriteJudgeTests {
    private static let version = ["X-Influxdb-Version": "1.8.10"]

    private func settings(_ credentials: InfluxCredentials?, bucket: Bool = false) throws -> InfluxOptions {
        let database: InfluxOptions.Database =
            bucket ? .bucket("home", organisation: "me") : .database("home", retentionPolicy: nil)
        let url = try #require(ServerURL("http://db.lan:8086"))
        var settings = InfluxOptions(gateway: "lab", url: url, database: database)
        settings.credentials = credentials
        return settings
    }

    private func judge(
        _ status: Int,
        _ body: String = "",
        headers: [String: String] = version,
        retryAfter: Duration? = nil,
        with credentials: InfluxCredentials? = nil,
        bucket: Bool = false
    ) throws -> WriteAnswer {
        let response = HTTPClientResponse(
            status: status,
            headers: headers,
            retryAfter: retryAfter,
            body: Array(body.utf8)
        )
        return WriteJudge(options: try settings(credentials, bucket: bucket)).judge(response)
    }

    private func fault(_ answer: WriteAnswer) -> OutputFault? {
        guard case .failed(let fault) = answer else { return nil }
        return fault
    }

    @Test func `only 204 and an empty 201 accept the points`() throws {
        #expect(try judge(204) == .accepted)
        #expect(try judge(201) == .accepted)
        for status in [200, 202, 206] { #expect(fault(try judge(status, "<html>"))?.kind == .misconfigured) }
        #expect(fault(try judge(201, "some points were rejected"))?.kind == .refused)
    }

    @Test(arguments: [
        (301, OutputFault.Kind.misconfigured), (308, .misconfigured), (400, .refused), (422, .refused),
        (401, .misconfigured), (403, .misconfigured), (404, .misconfigured), (405, .misconfigured),
        (415, .misconfigured), (408, .unavailable), (429, .unavailable), (500, .unavailable), (502, .unavailable),
        (503, .unavailable), (504, .unavailable), (507, .unavailable), (999, .unavailable),
    ]) func `each HTTP status gives the expected kind of fault`(status: Int, kind: OutputFault.Kind) throws {
        #expect(fault(try judge(status))?.kind == kind)
    }

    @Test func `after a status of 413 the bodies are smaller`() throws {
        guard case .tooLarge = try judge(413) else { throw PointsWereLost() }
    }

    private struct PointsWereLost: Error {}

    @Test func `an answer of 400 refuses points only if a database sent it`() throws {
        let html = "<html><h1>400 Bad Request</h1></html>"
        #expect(fault(try judge(400, html, headers: [:]))?.kind == .misconfigured)
        // Go's server for TLS says this to a plain request.
        let tls = "Client sent an HTTP request to an HTTPS server.\n"
        #expect(fault(try judge(400, tls, headers: [:]))?.kind == .misconfigured)
        // VictoriaMetrics, for a path that it does not have.
        #expect(fault(try judge(400, "unsupported path requested: \"/x\"", headers: [:]))?.kind == .misconfigured)
        let second = #"{"code":"invalid","message":"partial write: field type conflict"}"#
        #expect(fault(try judge(400, second, headers: [:]))?.kind == .refused)
    }

    @Test(arguments: [
        (400, #"{"error":"partial write: points beyond retention policy dropped=17"}"#),
        (422, #"{"code":"x","message":"partial write: dropped 17 points outside retention policy of 24h"}"#),
    ]) func `points that the server drops for their age are counted`(status: Int, body: String) throws {
        guard case .expired(17, let fault) = try judge(status, body) else { throw PointsWereLost() }
        #expect(fault.kind == .refused && fault.detail.contains("partial write"))
        #expect(self.fault(try judge(status, body.replacing("17", with: "some")))?.kind == .refused)
    }

    @Test func `the error text of the server is shown to people`() throws {
        let first = try #require(fault(try judge(400, #"{"error":"partial write: field type conflict dropped=1"}"#)))
        #expect(first.detail == "http://db.lan:8086 answers 400: partial write: field type conflict dropped=1")
        #expect(fault(try judge(500, #"{"code":"x","message":"bad\nday"}"#))?.detail.hasSuffix("500: bad day") == true)
        let long = try #require(fault(try judge(500, String(repeating: "x", count: 4000))))
        #expect(long.detail.count < 400)
        #expect(fault(try judge(500, "<html>…"))?.detail == "http://db.lan:8086 answers 500")
    }

    @Test func `a busy server's pause is kept`() throws {
        #expect(fault(try judge(503, retryAfter: .seconds(9)))?.retryAfter == .seconds(9))
        #expect(fault(try judge(429, retryAfter: .seconds(60)))?.retryAfter == .seconds(60))
        for status in [429, 503] { #expect(fault(try judge(status))?.retryAfter == .zero) }
        for status in [500, 502] { #expect(fault(try judge(status))?.retryAfter == nil) }
    }

    @Test func `a refused write is a fault that names the remedy`() throws {
        let token = InfluxCredentials.token("s3cret")
        let password = InfluxCredentials.password(user: "u", "s3cret")
        for (answer, words) in [
            (try judge(401), "write influx.token_file"), (try judge(401, with: token), "influx.token_file"),
            (try judge(401, with: password), "influx.password_file"), (try judge(404), "create the database 'home'"),
            (try judge(404, bucket: true), "create the bucket 'home' of the organisation 'me'"),
            (try judge(403, with: token, bucket: true), "allowed to write to the bucket 'home'"),
            (try judge(415), "write influx.gzip: false"),
            (try judge(302, headers: ["Location": "https://db.lan/x?secret=1"]), "redirects to https://db.lan/x;"),
        ] {
            let detail = fault(answer)?.detail ?? ""
            #expect(detail.contains(words), "\(detail)")
            #expect(!detail.contains("secret=1") && !detail.contains("s3cret"))
        }
    }

    @Test(arguments: [
        (HTTPClientError.Kind.unresolved, OutputFault.Kind.unavailable), (.unreachable, .unavailable),
        (.timeout, .unavailable), (.interrupted, .unavailable), (.local, .unavailable), (.certificate, .misconfigured),
        (.tls, .misconfigured), (.file, .misconfigured), (.notHTTP, .misconfigured),
    ]) func `each failure without an answer has its kind`(kind: HTTPClientError.Kind, fault: OutputFault.Kind) throws {
        let found = OutputFault(HTTPClientError(kind, "reason"), try settings(nil))
        #expect(found.kind == fault)
        #expect(found.detail.hasPrefix("cannot write to http://db.lan:8086: reason"))
    }
}
