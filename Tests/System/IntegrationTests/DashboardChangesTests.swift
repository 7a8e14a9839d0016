import Foundation
import TestKit
import Testing

/// Changes of the configuration that the dashboard makes, on a daemon with simulated peripherals.
@Suite(.timeLimit(.minutes(3))) struct DashboardChangesTests {
    private static let scenario = """
        timing: quick
        peripherals:
          - {name: probe, kind: heart-rate, address: 'C0:FF:EE:00:00:09'}
          - name: hygrometer
            kind: beacon
            address: C0:FF:EE:00:00:31
            advertise:
              name: GVH5075_0123
              manufacturer_data: {0xEC88: [0003215D6400]}
        """
    private static let token = String(repeating: "t", count: 32)

    /// Runs `body` with a function that sends requests with the token: path, and body of a POST.
    private func withGateway(
        _ body: (PeripheralBench, (String, String?) throws -> (status: Int, text: String)) async throws -> Void
    ) async throws {
        let bench = try await PeripheralBench(Self.scenario, files: ["token": Self.token + "\n"])
        let port = try Broker.freePort()
        let http = "http: {listen: '127.0.0.1:\(port)', token_file: token}\n"
        try await bench.withDaemon(settings: http) {
            try await eventually { (try? RawClient(UInt16(port))) != nil }
            try await body(bench) { path, text in
                let client = try RawClient(UInt16(port))
                let head =
                    "\(text == nil ? "GET" : "POST") /api/v1/\(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    + "Authorization: Bearer \(Self.token)\r\nContent-Type: application/json\r\nConnection: close\r\n"
                client.send(head + "Content-Length: \(text?.utf8.count ?? 0)\r\n\r\n" + (text ?? ""))
                let answer = client.readToEnd()
                return (Int(answer.split(separator: " ").dropFirst().first ?? "") ?? 0, answer)
            }
        }
    }

    @Test func `a peripheral in reach becomes a device with values, and gets a name for people`() async throws {
        try await withGateway { bench, send in
            try await eventually { try send("peripherals", nil).text.contains("\"model\":\"Govee H5075\"") }
            let proposal = #""proposal":"govee-h5075","profiles":[{"profile":"govee","#
            let found = try send("peripherals", nil)
            #expect(found.text.contains(proposal))
            let device = #"{"address":"C0:FF:EE:00:00:31","name":"kitchen","profiles":["govee"],"title":"Window"}"#
            let added = try send("peripherals/add", device)
            #expect(added.status == 201, "\(added.text)")
            try await eventually { try send("devices/kitchen", nil).text.contains("\"temperature\":20.5") }
            let labelled = try send("devices/kitchen/label", #"{"title":"Kitchen's window","area":"Kitchen"}"#)
            #expect(labelled.status == 200)
            try await eventually { try send("devices/kitchen", nil).text.contains(#""area":"Kitchen""#) }
            let kitchen = try send("devices/kitchen", nil)
            #expect(kitchen.text.contains(#""only_advertises":true"#))
            let probe = try send("devices/probe", nil)
            #expect(!probe.text.contains("only_advertises"))
            let file = try bench.text("gattherd.d/kitchen.yaml")
            #expect(file.contains("title: 'Kitchen''s window'"))
            let again = try send("peripherals", nil)
            #expect(again.text.contains("\"device\":\"kitchen\""))
            let twin = try send("peripherals/add", device)
            #expect(twin.status == 409)
        }
    }

    @Test func `a file is checked, applied, and refused when it is wrong or has changed`() async throws {
        try await withGateway { bench, send in
            let list = try send("configuration", nil)
            #expect(list.text.contains(#""files":["gattherd.yaml"],"restart_needed""#))
            let draft = #"{"file":"gattherd.d/extra.yaml","text":"log: {level: debug}\n"}"#
            let wrong = #"{"file":"gattherd.d/extra.yaml","text":"log: {levl: debug}\n"}"#
            let checked = try send("configuration/check", wrong)
            #expect(checked.text.contains("did you mean 'level'?"))
            let refused = try send("configuration/file", wrong)
            #expect(refused.status == 422)
            #expect(!FileManager.default.fileExists(atPath: bench.folder.file("gattherd.d/extra.yaml")))
            let applied = try send("configuration/file", draft)
            #expect(applied.status == 200)
            let taken = try send("configuration/file", draft)
            #expect(taken.status == 409)
            let content = try bench.text("gattherd.d/extra.yaml")
            #expect(content == "log: {level: debug}\n")
            let log = try send("log?level=debug&limit=1000", nil)
            #expect(log.text.contains("the configuration was reloaded"))
            let version = try #require(applied.text.firstMatch(of: /"version":"([^"]+)"/)?.1)
            let empty = #"{"file":"gattherd.d/extra.yaml","text":"","version":"\#(version)"}"#
            let deleted = try send("configuration/file", empty)
            #expect(deleted.status == 200 && !deleted.text.contains("version"), "\(deleted.text)")
            #expect(!FileManager.default.fileExists(atPath: bench.folder.file("gattherd.d/extra.yaml")))
        }
    }

    @Test func `explanations and checks are those of the command line`() async throws {
        try await withGateway { _, send in
            let why = try send("devices/probe/why", nil)
            #expect(why.text.contains("\"device\":\"probe\""))
            let unknown = try send("devices/none/why", nil)
            #expect(unknown.status == 404)
            let doctor = try send("doctor", nil)
            #expect(doctor.text.contains("\"check\":\"daemon\""))
        }
    }
}
