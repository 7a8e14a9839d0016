import GattherdHTTP
import GattherdModel
import Testing

/// The JSON API.
@Suite struct APITests {
    private let backend = FakeBackend()
    private let live = LiveStatus()
    private var service: HTTPService { HTTPService(backend, live) }

    @Test func `the status has the form of the command line`() async {
        let answer = await service.get("/api/v1/status")
        #expect(answer.status == 200)
        #expect(answer.header("Content-Type") == "application/json")
        #expect(answer.text.contains(#""outputs":[{"backlog":3,"delivered":45,"errors":0,"kind":"mqtt","lag":0.25,"#))
        #expect(answer.text.contains(#""state":"backingOff""#))
    }

    @Test func `a device has its streams, controls and newest values`() async {
        live.describe(LiveFixtures.description)
        let samples = [Sample(metric: 0, value: .integer(72)), Sample(metric: 1, value: .boolean(true))]
        live.observe(LiveFixtures.batch(LiveFixtures.stream(), samples))
        let text = await service.get("/api/v1/devices/strap").text
        #expect(text.hasPrefix(#"{"address":"C0:FF:EE:00:00:01","attempt":0,"device":"strap","#))
        for part in [
            #""streams":[{"stream":"heart_rate","metrics":[{"metric":"heart_rate","unit":"bpm","kind":"gauge"},"#,
            #"{"control":"number","kind":"integer","min":0,"max":255,"unit":null,"throttle":0.1,"echo":"number"}"#,
            #""kind":"real","min":-0.5,"max":0.5,"#, #""kind":"boolean","unit""#,
            #""kind":"choice","choices":["eco","turbo"],"#, #""kind":"trigger","#,
            #""values":{"heart_rate":72,"sensor_contact":true}}"#,
        ] { #expect(text.contains(part)) }
        #expect(await service.get("/api/v1/devices").text.hasSuffix(",\(text)]"))
        #expect(await service.get("/api/v1/devices/nobody").status == 404)
    }

    @Test func `a metric of several streams has a value for each, and its plain name shows the first`() async {
        let samples = { (level: Int64, rssi: Int64) in
            [Sample(metric: 0, value: .integer(level)), Sample(metric: 1, value: .integer(rssi))]
        }
        live.describe(LiveFixtures.description(batteries: ["vendor", "battery"]))
        live.observe(LiveFixtures.batch(LiveFixtures.battery("battery"), samples(98, -60)))
        live.observe(LiveFixtures.batch(LiveFixtures.battery("vendor"), samples(40, -70)))
        let shared = #""battery/battery_level":98,"battery_level":98,"rssi":-70,"vendor/battery_level":40"#
        #expect(await service.get("/api/v1/devices/strap").text.hasSuffix(#""values":{\#(shared)}}"#))
        live.describe(LiveFixtures.description(batteries: ["vendor"]))
        let alone = #""values":{"battery_level":40,"rssi":-70}}"#
        #expect(await service.get("/api/v1/devices/strap").text.hasSuffix(alone))
    }

    @Test func `history queries have the syntax of the command line`() async throws {
        let query = [
            "device": "strap", "stream": "pulse", "metric": "heart_rate", "since": "1h", "until": "now", "every": "1m",
            "limit": "5",
        ]
        let answer = await service.get("/api/v1/history", query: query)
        #expect(answer.text == "\"history\"")
        let asked = try #require(backend.queries.first)
        #expect(asked.device == "strap" && asked.stream == "pulse" && asked.metric == "heart_rate")
        #expect(asked.since == "1h")
        #expect(asked.until == "now" && asked.every == "1m" && asked.limit == 5)
        #expect(await service.get("/api/v1/rejects", query: ["device": "dial"]).text == "\"rejects\"")
        #expect(backend.queries.last?.limit == 1000)
    }

    @Test(arguments: [("limit", "0"), ("limit", "10001"), ("limit", "x"), ("limt", "1")])
    func `an invalid argument is refused with a hint`(name: String, value: String) async {
        let answer = await service.get("/api/v1/history", query: [name: value])
        #expect(answer.status == 400)
        #expect(answer.text.contains("limit"))
        #expect(backend.queries.isEmpty)
    }

    @Test(arguments: [
        ("status", "foo", "this path takes none"), ("devices", "device", "this path takes none"),
        ("devices/strap", "limit", "this path takes none"), ("rejects", "every", "use device, limit"),
        ("events", "device", "this path takes none"), ("history", "foo", "use device, stream, metric, since, until"),
    ])
    func `an unknown argument is refused with the known ones`(
        path: String,
        name: String,
        all: String
    )
        async
    {
        let answer = await service.get("/api/v1/" + path, query: [name: "1"])
        #expect(answer.status == 400)
        #expect(answer.text.contains("unknown argument '\(name)'; \(all)"))
    }

    @Test func `events can be queried by device, and their stream has no arguments`() async {
        var request = HTTPRequest(.get, "/api/v1/events", headers: ["host": "localhost", "accept": "application/json"])
        request.query = ["device": "dial", "limit": "5"]
        #expect(await service.answer(request).text == "\"events\"")
        request.query = ["since": "1h"]
        #expect(await service.answer(request).status == 400)
    }

    @Test func `a repeated argument is refused, except where arguments are ignored`() async {
        for (path, status) in [("/api/v1/history", 400), ("/metrics", 200), ("/healthz", 200), ("/app.js", 200)] {
            var request = HTTPRequest(.get, path, query: ["device": "a"], headers: ["host": "localhost"])
            request.repeated = ["device"]
            #expect(await service.answer(request).status == status)
        }
        #expect(await service.post("/api/v1/devices/strap/connect").status == 202)
    }

    @Test(arguments: [(BackendError.Kind.invalid, 400), (.unavailable, 503), (.unreadable, 500)])
    func `a failed query returns its reason`(kind: BackendError.Kind, status: Int) async {
        backend.fail(with: BackendError(kind, "why"))
        let answer = await service.get("/api/v1/rejects")
        #expect(answer.status == status)
        #expect(answer.text == #"{"error":"why"}"#)
    }

    @Test func `a client that accepts JSON gets the newest events`() async {
        let request = HTTPRequest(
            .get,
            "/api/v1/events",
            headers: ["host": "localhost", "accept": "application/json"]
        )
        #expect(await service.answer(request).text == "\"events\"")
    }

    @Test func `a device is connected and disconnected`() async {
        #expect(await service.post("/api/v1/devices/strap/disconnect").status == 202)
        let answer = await service.post("/api/v1/devices/strap/connect")
        #expect(answer.text == #"{"device":"strap","wanted":"connected"}"#)
        #expect(backend.commands == ["disconnect strap", "connect strap"])
        #expect(await service.post("/api/v1/devices/nobody/connect").status == 404)
    }

    @Test(arguments: [
        (#"{"value":128}"#, "128"), (#"{"value":-1.5}"#, "-1.5"), (#"{"value":true}"#, "true"),
        (#"{"value":"eco"}"#, "eco"), (#"{"value":null}"#, ""), ("{}", ""),
    ])
    func `a control can be set to any scalar`(body: String, value: String) async {
        let answer = await service.post("/api/v1/devices/dial/controls/number", body)
        #expect(answer.status == 200)
        #expect(answer.text.hasPrefix(#"{"device":"dial","control":"number","value":"#))
        #expect(backend.commands == ["set dial number \(value)"])
    }

    @Test func `a control may have the epoch of a lease, and a transaction`() async {
        let path = "/api/v1/devices/dial/controls/number"
        let answer = await service.post(path, #"{"value":128,"epoch":1795231205123,"transaction":"a7"}"#)
        #expect(answer.status == 200)
        #expect(backend.commands == [#"set dial number 128 under 1795231205123 as "a7""#])
        for epoch in ["\"7\"", "7.5", "null", "99999999999999999999"] {
            #expect(await service.post(path, #"{"value":1,"epoch":\#(epoch)}"#).status == 400)
        }
        #expect(backend.commands.count == 1)
    }

    @Test(arguments: [#"{"valeu":128}"#, #"{"value":1,"epohc":7}"#, #"{"value":1,"Transaction":"a"}"#])
    func `a mistyped member sets no control`(body: String) async {
        let answer = await service.post("/api/v1/devices/dial/controls/number", body)
        #expect(answer.status == 400 && answer.text.contains("use value, epoch, transaction"), "\(answer.text)")
        #expect(backend.commands.isEmpty)
    }

    @Test(arguments: ["", "128", "[]", #"{"value":[1]}"#, #"{"value":{}}"#, "{", "\u{0}", "{\"value\":1"])
    func `a body without a value is refused`(body: String) async {
        #expect(await service.post("/api/v1/devices/dial/controls/number", body).status == 400)
        #expect(backend.commands.isEmpty)
    }

    @Test func `a form of another site cannot set a control`() async {
        for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
            let answer = await service.post("/api/v1/devices/dial/controls/number", #"{"value":1}"#, type: type)
            #expect(answer.status == 415)
        }
        #expect(backend.commands.isEmpty)
    }

    @Test(arguments: [
        (ControlError.noSuchControl("x"), 404), (.invalidValue("256", expected: "an integer from 0 to 255"), 422),
        (.notReady(device: "dial"), 409), (.superseded, 409), (.refused("no"), 502), (.timedOut, 504),
        (.notOwner(device: "dial", owner: "east"), 409), (.otherEpoch(present: 7), 409), (.repeated, 409),
    ])
    func `a failed control returns its reason`(error: ControlError, status: Int) async {
        backend.refuse(with: error)
        let answer = await service.post("/api/v1/devices/dial/controls/x", #"{"value":256}"#)
        #expect(answer.status == status)
        #expect(answer.text.hasPrefix(#"{"error":"In words: "#))
    }

    @Test func `writing needs the token, and reading needs GET`() async {
        let paths = ["strap/connect", "strap/disconnect", "dial/controls/number"].map { "/api/v1/devices/" + $0 }
        for path in paths {
            let headers = ["host": "localhost", "content-type": "application/json"]
            let request = HTTPRequest(.post, path, headers: headers, body: Array(#"{"value":1}"#.utf8))
            #expect(await service.answer(request).status == 401)
            var reading = request
            reading.method = .get
            reading.headers["authorization"] = "Bearer " + FakeBackend.token
            #expect(await service.answer(reading).status == 405)
        }
        #expect(await service.post("/api/v1/status").status == 405)
        #expect(backend.commands.isEmpty)
    }

    @Test(arguments: [
        "/api", "/api/v1", "/api/v2/status", "/api/v1/devices/", "/api/v1/devices//connect", "/api/v1/status/x",
        "/api/v1/devices/strap/dance", "/api/v1/devices/strap/controls", "/api/v1/devices/strap/controls/",
        "/api/v1/devices/strap/controls/a/b", "//metrics", "/metrics/", "/../metrics", "", "/index.html", "/app.js/",
        "/package.json",
    ])
    func `unknown paths return 404`(path: String) async {
        #expect(await service.get(path).status == 404)
        #expect(await service.post(path).status == 404)
    }

    @Test func `no response contains the token`() async {
        for path in ["status", "devices", "history", "rejects"] {
            #expect(!(await service.get("/api/v1/" + path).text.contains(FakeBackend.token)))
        }
    }
}
