import GattherdHTTP
import GattherdLog
import GattherdSync
import TestKit
import Testing

/// The requests that change the configuration, and those that only clients with the token may read.
@Suite struct AdministrationTests {
    private let backend = FakeBackend()
    private var service: HTTPService { HTTPService(backend) }
    private var requests: [String] { backend.fakeAdministration.requests }

    private func get(_ path: String, _ query: [String: String] = [:]) async -> HTTPResponse {
        let headers = ["host": "localhost", "authorization": "Bearer " + FakeBackend.token]
        return await service.answer(HTTPRequest(.get, "/api/v1/" + path, query: query, headers: headers))
    }

    private func post(_ path: String, _ body: String) async -> HTTPResponse {
        await service.post("/api/v1/" + path, body)
    }

    private static let reads = [
        "peripherals", "configuration", "configuration/file", "log", "doctor", "devices/strap/why",
    ]
    private static let writes = ["peripherals/add", "configuration/file", "configuration/check", "devices/strap/label"]

    @Test(arguments: reads)
    func `reading needs the token also on this host`(path: String) async {
        #expect(await service.get("/api/v1/" + path).status == 401)
        #expect(requests.isEmpty)
    }

    @Test(arguments: writes)
    func `writing needs the token, and a page of this server`(path: String) async {
        let answer = await service.answer(HTTPRequest(.post, "/api/v1/" + path, headers: ["host": "localhost"]))
        #expect(answer.status == 401)
        let headers = [
            "host": "localhost", "origin": "https://evil.example", "authorization": "Bearer " + FakeBackend.token,
        ]
        #expect(await service.answer(HTTPRequest(.post, "/api/v1/" + path, headers: headers)).status == 403)
        #expect(requests.isEmpty)
    }

    @Test(arguments: writes)
    func `a body that is not a JSON object is refused`(path: String) async {
        #expect(await post(path, "[]").status == 400)
        #expect(await service.post("/api/v1/" + path, "{}", type: "text/plain").status == 400)
        #expect(requests.isEmpty)
    }

    @Test func `a device is added with its labels, or shown before`() async {
        let members = #""address":"A4:C1:38:11:22:33","name":"a","profiles":["p"],"title":"T","area":"""#
        #expect(await post("peripherals/add", "{\(members)}").status == 201)
        #expect(await post("peripherals/add", #"{\#(members),"preview":true}"#).status == 200)
        #expect(await post("peripherals/add", #"{"address":"A4:C1:38:11:22:33"}"#).status == 400)
        let request = #"add A4:C1:38:11:22:33 a ["p"] T - -"#
        #expect(requests == [request, request + " preview"])
    }

    @Test(arguments: ["\"true\"", "1", "[]", "{}"])
    func `a preview that is neither true nor false adds no device`(preview: String) async {
        let members = #""address":"A4:C1:38:11:22:33","name":"a""#
        #expect(await post("peripherals/add", #"{\#(members),"preview":\#(preview)}"#).status == 400)
        #expect(requests.isEmpty)
        #expect(await post("peripherals/add", #"{\#(members),"preview":null}"#).status == 201)
    }

    @Test func `a restart is accepted with the token only`() async {
        #expect(await get("restart").status == 405)
        let headers = ["host": "localhost"]
        #expect(await service.answer(HTTPRequest(.post, "/api/v1/restart", headers: headers)).status == 401)
        #expect(requests.isEmpty)
        #expect(await post("restart", "{}").status == 202)
        #expect(requests == ["restart"])
    }

    @Test func `an empty label removes it`() async {
        #expect(await post("devices/strap/label", #"{"title":"T","area":"","note":null}"#).status == 200)
        #expect(requests == ["label strap T - -"])
    }

    @Test(arguments: ["title", "area", "note"])
    func `a member that is no short text changes nothing`(member: String) async {
        for value in ["7", "[]", "\"\(String(repeating: "x", count: 2001))\""] {
            #expect(await post("devices/strap/label", "{\"\(member)\":\(value)}").status == 400)
        }
        let device = #"{"address":"C0:FF:EE:00:00:01","name":"x","profiles":["a",7]}"#
        #expect(await post("peripherals/add", device).status == 400)
        #expect(requests.isEmpty)
    }

    @Test(arguments: [
        ("devices/strap/label", #""titel":"T""#, "use title, area, note"),
        ("peripherals/add", #""address":"C0:FF:EE:00:00:01","name":"x","preveiw":true"#, "use address, name, profiles"),
        ("configuration/file", #""file":"g.yaml","text":"","versoin":"1""#, "use file, text, version"),
        ("configuration/check", #""file":"g.yaml","text":"","texts":"""#, "use file, text, version"),
    ])
    func `a mistyped member is refused and named`(path: String, members: String, advice: String) async {
        let answer = await post(path, "{\(members)}")
        #expect(answer.status == 400)
        #expect(answer.text.contains("unknown member '") && answer.text.contains(advice), "\(answer.text)")
        #expect(requests.isEmpty)
    }

    @Test func `files are read, checked and written`() async {
        #expect(await get("configuration").status == 200)
        #expect(await get("configuration/file", ["file": "gattherd.yaml"]).status == 200)
        #expect(await get("configuration/file").status == 400)
        #expect(await post("configuration/check", #"{"file":"g.yaml","text":""}"#).status == 200)
        #expect(await post("configuration/file", #"{"file":"g.yaml","text":"ab","version":"1"}"#).status == 200)
        #expect(await post("configuration/file", #"{"file":"g.yaml"}"#).status == 400)
        #expect(requests == ["files", "file gattherd.yaml", "check g.yaml 0", "apply g.yaml 2 1"])
    }

    @Test func `the log is read by level and device`() async {
        #expect(await get("log", ["level": "warning", "device": "strap", "limit": "5"]).status == 200)
        #expect(await get("log").status == 200)
        #expect(requests == ["log warning strap 5", "log info - 200"])
        for query in [["level": "loud"], ["limit": "0"], ["limit": "1001"], ["lvel": "info"]] {
            #expect(await get("log", query).status == 400)
        }
    }

    @Test func `the scan, the checks and explanations answer`() async {
        #expect(await get("devices/strap/why").text == "{}")
        #expect(await get("peripherals").text == "{}")
        #expect(await get("doctor").text == "{}")
        #expect(await service.post("/api/v1/doctor").status == 405)
    }

    @Test(arguments: [
        (BackendError.Kind.invalid, 400), (.forbidden, 403), (.notFound, 404), (.conflict, 409), (.refused, 422),
        (.unavailable, 503),
    ])
    func `an error has a status and a reason`(kind: BackendError.Kind, status: Int) async {
        backend.fakeAdministration.fail(with: BackendError(kind, "because"))
        let answer = await post("devices/strap/label", "{}")
        #expect(answer.status == status)
        #expect(answer.text == #"{"error":"because"}"#)
    }

    @Test(arguments: [("/api/v1/configuration/file", true), ("/api/v1/peripherals/add", false)])
    func `only clients with the token may send a whole file`(path: String, isLarge: Bool) async throws {
        let head = "POST \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        let text = String(repeating: "a", count: 100_000)
        let body = #"{"file":"g.yaml","text":"\#(text)"}"#
        let size = body.utf8.count
        let server = HTTPServer(host: "127.0.0.1", port: 0, log: .silent)
        let service = HTTPService(backend, server: server)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await service.run() }
            defer { group.cancelAll() }
            for await case let port? in server.port.watch() {
                try await onThread {
                    func status(_ more: String, sending body: String) throws -> Int {
                        let client = try RawClient(port)
                        client.send(head + more + "Content-Length: \(size)\r\n\r\n" + body)
                        return client.readAnswer().status
                    }
                    let token = "Authorization: Bearer \(FakeBackend.token)\r\n"
                    // A refused client gets the response before it sends the body.
                    let refused = try status("", sending: "")
                    #expect(refused == 413)
                    let answered = try status(token, sending: isLarge ? body : "")
                    #expect(answered == (isLarge ? 200 : 413))
                }
                return
            }
        }
        #expect(requests == (isLarge ? ["apply g.yaml 100000 -"] : []))
    }
}
