import Foundation
import GattherdProcess
import TestKit
import Testing

/// `gattherd simulate` from start to end.
@Suite(.timeLimit(.minutes(3)), .serialized) struct SimulateCommandTests {
    /// A simulation whose folder is inside a test folder, so that a test can see leftover files.
    private final class Run: Sendable {
        let folder: TemporaryFolder
        let output: OutputFile
        let errors: OutputFile
        let child: ChildProcess

        init(_ arguments: [String] = []) throws {
            folder = try TemporaryFolder()
            let work = folder.file("tmp")
            try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: true)
            output = try OutputFile(folder.file("out"))
            errors = try OutputFile(folder.file("err"))
            child = try ChildProcess(
                Programs.path("gattherd"),
                ["simulate"] + arguments,
                environment: ["TMPDIR=" + work],
                output: .descriptor(output.descriptor),
                errors: .descriptor(errors.descriptor)
            )
        }

        /// The remaining folders of the simulation's parts.
        var leftovers: [String] { (try? FileManager.default.contentsOfDirectory(atPath: folder.file("tmp"))) ?? ["?"] }

        /// Returns the running processes of the simulation: all have the test folder in their environment.
        func survivors() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { UInt($0) != nil }.filter { pid in
                let variables = FileManager.default.contents(atPath: "/proc/\(pid)/environ") ?? Data()
                return String(decoding: variables, as: UTF8.self).contains(folder.path)
            }
        }
    }

    @Test func `a simulation shows the whole data path and leaves nothing behind`() async throws {
        let run = try Run()
        try await eventually { run.output.lines.contains("6 of 6 devices are ready") || run.child.exitStatus != nil }
        let line = try #require(run.output.lines.first { $0.contains("sqlite3 ") })
        let database = String(try #require(line.split(separator: " ").dropFirst().first))
        let shell = SQLiteShell(database)
        try await eventually {
            try await shell.value("SELECT count(DISTINCT device) FROM history WHERE metric = 'heart_rate'") == "3"
        }
        try await eventually {
            try await shell.value(
                "SELECT count(DISTINCT value) > 2 FROM history WHERE device = 'tag' AND metric = 'temperature'"
                    + " AND source = 'advert' AND profile = 'ruuvitag'"
            ) == "1"
        }
        try await eventually {
            try await shell.value("SELECT count(*) > 0 FROM history WHERE device = 'dial' AND metric = 'number'") == "1"
        }
        try await watch(run)
        try await browse(run)
        try await command(with: String(database.dropLast("history.db".count)) + "gattherd.yaml")
        run.child.signal(SIGINT)
        #expect(await run.child.wait() == .exited(0))
        #expect(run.output.lines.last == "stopped")
        #expect(run.leftovers.isEmpty)
        #expect(try run.survivors().isEmpty)
    }

    /// Checks the pages for a browser.
    private func browse(_ run: Run) async throws {
        let port = try #require(run.output.text.firstMatch(of: /http:\/\/127\.0\.0\.1:([0-9]+)\//)?.1)
        let client = try RawClient(try #require(UInt16(port)))
        #expect(client.get("/").body.hasPrefix("<!doctype html>"))
        #expect(client.get("/api/v1/devices/dial").body.contains(#""control":"number","kind":"integer","min":0,"#))
        let page = client.get("/api/v1/history?device=dial&stream=number&metric=number&since=1h&limit=1").body
        #expect(page.hasPrefix(#"{"rows":[{"ts":"20"#))
        #expect(page.contains(#""device":"dial","metric":"number","value":"#))
        #expect(page.contains(#""stream":"number"}"#))
        #expect(client.get("/api/v1/history?stream=none&since=1h&every=1h").body == #"{"rows":[],"next":null}"#)
        #expect(client.get("/api/v1/history?since=soon").status == 400)
        #expect(client.get("/api/v1/rejects").body == "[]")
        client.send("GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n")
        #expect(client.readAnswer().body.contains(#""kind":"daemon","detail":{"state":"started"}"#))
        client.send("GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        #expect(client.read(through: "event: values\n").contains("event: snapshot\n"))
        try control(UInt16(port) ?? 0, token: String(contentsOfFile: tokenFile(run), encoding: .utf8))
    }

    private func tokenFile(_ run: Run) throws -> String {
        String(try #require(run.output.text.firstMatch(of: /need the token in ([^ ]+):/)?.1))
    }

    /// Checks writes with the token.
    private func control(_ port: UInt16, token: String) throws {
        let client = try RawClient(port)
        func post(_ path: String, _ token: String) -> Int {
            let body = #"{"value":77}"#
            let head = "POST /api/v1/devices/\(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            client.send(head + "Authorization: Bearer \(token)\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body)
            return client.readAnswer().status
        }
        let token = token.trimmingCharacters(in: .newlines)
        #expect(post("dial/controls/number", token) == 200)
        #expect(post("dial/controls/number", token.lowercased() + "0") == 401)
        #expect(post("nobody/connect", token) == 404)
    }

    /// Checks the metrics and probes for monitoring.
    private func watch(_ run: Run) async throws {
        let port = try #require(run.output.text.firstMatch(of: /http:\/\/127\.0\.0\.1:([0-9]+)\//)?.1)
        let client = try RawClient(try #require(UInt16(port)))
        #expect(client.get("/healthz").body == "ok\n")
        // The broker is not needed for links and history, and may be reached later.
        try await eventually { client.get("/readyz").status == 200 }
        let metrics = client.get("/metrics").body
        #expect(metrics.contains(#"gattherd_device_state{device="dial",state="ready"} 1"#))
        #expect(metrics.contains(#"gattherd_output_up{output="mqtt"} 1"#))
        try compareMetrics(metrics)
    }

    /// Checks that each metric in the rules and the dashboard of `config` exists, except for opt-in ones and those that
    /// may be unknown.
    private func compareMetrics(_ text: String) throws {
        let exported = Set(text.matches(of: /# TYPE ([a-z_]+)/).map { $0.1 })
        let config = Checkout.root.appending(path: "config")
        for file in ["prometheus/gattherd.yaml", "grafana/gattherd.json"] {
            let text = try String(contentsOf: config.appending(path: file), encoding: .utf8)
            let used = Set(text.matches(of: /gattherd_[a-z_]+/).map(\.0))
            #expect(used.count > 10)
            let others: Set<Substring> = ["gattherd_sample", "gattherd_adapter_slots", "gattherd_device_rssi_dbm"]
            #expect(used.subtracting(exported).subtracting(others).isEmpty)
        }
    }

    /// Runs commands on the daemon with a configuration.
    private func command(with configuration: String) async throws {
        func gattherd(_ words: String...) async throws -> (Int32, String) {
            try await Programs.run(Programs.path("gattherd"), words + ["--config", configuration])
        }
        let status = try await gattherd("status", "--json").1
        #expect(status.contains("\"gateway\":\"simulated\""))
        #expect(try await gattherd("status").1.contains("strap    ready"))
        #expect(try await gattherd("status").1.contains(/\nmqtt       mqtt:\/\/[^ ]+ connected/))
        #expect(try await gattherd("set", "dial", "number", "128") == (0, "dial number = 128\n"))
        #expect(try await gattherd("set", "dial", "number", "256").0 == 65)
        #expect(try await gattherd("set", "nobody", "number", "1").0 == 65)
        try await eventually {
            try await gattherd("history", "--device", "dial", "--metric", "number", "--format", "csv").1.contains(
                ",128,"
            )
        }
        try await ask(the: configuration)
        #expect(try await gattherd("disconnect", "runner").0 == 0)
        try await eventually { try await gattherd("status").1.contains("runner   held") }
        #expect(try await gattherd("why", "runner").1.contains("nothing, until: gattherd connect runner"))
        #expect(try await gattherd("why", "runner", "--json").1.contains(#""state":"held""#))
        #expect(try await gattherd("why", "strap-9").0 == 65)
        #expect(try await gattherd("connect", "runner").0 == 0)
        try await eventually { try await gattherd("status").1.contains("runner   ready") }
        #expect(try await gattherd("rejects", "--format", "json") == (0, ""))
        #expect(try await gattherd("run").0 == 73)
        try await careForDatabase(gattherd)
    }

    /// Runs the database commands while the daemon runs.
    private func careForDatabase(_ gattherd: (String...) async throws -> (Int32, String)) async throws {
        let folder = try TemporaryFolder()
        let copy = folder.file("copy.db")
        let (code, check) = try await gattherd("db", "check")
        #expect(code == 0)
        #expect(check.contains("/history.db: good\n"))
        #expect(try await gattherd("db", "backup", copy).0 == 0)
        #expect(try await gattherd("db", "backup", copy).0 == 73)
        #expect(try await gattherd("db", "compact").1.contains("the daemon went on meanwhile"))
        #expect(try await gattherd("db", "check", "--json", "--database", copy).1.contains(#""findings":[],"size":"#))
        try Data(repeating: 1, count: 10_000).write(to: URL(filePath: copy))
        #expect(try await gattherd("db", "check", "--database", copy).0 == 65)
        #expect(try await gattherd("db", "check", "--database", folder.file("nothing")).0 == 69)
    }

    /// Sends requests to the daemon through the broker.
    private func ask(the configuration: String) async throws {
        let text = try String(contentsOfFile: configuration, encoding: .utf8)
        let port = String(try #require(text.firstMatch(of: /mqtt:\/\/[^:]+:([0-9]+)/)).1)
        func answer(to verb: String, _ payload: String) async throws -> String {
            let topic = "gattherd/simulated/bridge/request/" + verb
            let arguments = ["-p", port, "-V", "mqttv5", "-t", topic, "-e", "test/answer", "-m", payload]
            return try await Programs.run("mosquitto_rr", arguments).1
        }
        let health = try await answer(to: "health", "")
        #expect(health.contains(#""devices":6,"ready":6,"seq":"#))
        #expect(health.contains(#""outputs":[{"name":"mqtt","state":"connected","backlog":"#))
        let query = #"{"device":"dial","stream":"number","metric":"number","since":"1h","limit":1}"#
        let rows = try await answer(to: "history", query)
        #expect(rows.hasPrefix(#"{"status":"ok","data":{"chunk":0,"last":true,"next":"20"#))
        #expect(rows.contains(#""device":"dial","metric":"number","value":"#))
        let spans = try await answer(to: "history", #"{"device":"dial","metric":"number","every":"1h"}"#)
        #expect(spans.contains(#""max":128,"#))
        #expect(spans.contains(#""stream":"number"}"#))
        let none = try await answer(to: "history", #"{"stream":"none"}"#)
        #expect(none.contains(#""rows":[]"#))
        #expect(try await answer(to: "history", #"{"since":"soon"}"#).contains("'soon' is not a time; write 1h"))
    }

    @Test(arguments: ["", "simulating"])
    func `a simulation that is interrupted at its start leaves nothing behind`(sign: String) async throws {
        let run = try Run()
        try await eventually { sign.isEmpty || run.output.lines.contains { $0.hasPrefix(sign) } }
        run.child.signal(SIGTERM)
        _ = await run.child.wait()
        #expect(run.leftovers.isEmpty)
        #expect(try run.survivors().isEmpty)
    }

    @Test func `a part that dies is reported with its last output, and the others end`() async throws {
        let run = try Run()
        try await eventually { run.output.lines.contains { $0.contains("sqlite3 ") } || run.child.exitStatus != nil }
        let broker = try #require(
            try run.survivors().first { pid in
                let name = try? String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8)
                return name == "mosquitto\n"
            }
        )
        kill(try #require(pid_t(broker)), SIGKILL)
        #expect(await run.child.wait() == .exited(69))
        #expect(run.errors.lines.first?.hasPrefix("gattherd simulate: the broker was ended by signal 9") == true)
        #expect(run.leftovers.isEmpty)
        #expect(try run.survivors().isEmpty)
    }

    @Test func `a folder given with --keep stays`() async throws {
        let folder = try TemporaryFolder()
        let scenario = try folder.write(
            "peripherals: [{name: Dial, kind: number-service, address: C0:FF:EE:00:00:10, rate: 5}]\n",
            to: "one.yaml"
        )
        let run = try Run(["--keep", folder.file("kept"), scenario])
        try await eventually { run.output.lines.contains("1 of 1 devices are ready") || run.child.exitStatus != nil }
        let before = try contents(of: folder.file("kept"))
        let (code, explanation) = try await refusal("--keep", folder.file("kept"), scenario)
        #expect(code == 73 && explanation.contains("/kept: another simulation runs there; "))
        #expect(try contents(of: folder.file("kept")) == before)
        run.child.signal(SIGINT)
        #expect(await run.child.wait() == .exited(0))
        let shell = SQLiteShell(folder.file("kept/history.db"))
        #expect(try await shell.value("SELECT count(DISTINCT device) FROM latest WHERE device = 'dial'") == "1")
    }

    /// Returns the content of files that a simulation must not replace.
    private func contents(of folder: String) throws -> [String] {
        try ["gattherd.yaml", "http-token", "mosquitto.conf"].map {
            try String(contentsOfFile: folder + "/" + $0, encoding: .utf8)
        }
    }

    private func refusal(_ words: String...) async throws -> (code: Int32, explanation: String) {
        let folder = try TemporaryFolder()
        let (program, errors) = (Programs.path("gattherd"), folder.file("errors"))
        let code = try await Programs.run(program, ["simulate"] + words, errors: errors).0
        return (code, try String(contentsOfFile: errors, encoding: .utf8))
    }

    @Test(arguments: ["gattherd.yaml", "http-token", "mosquitto.conf", "history.db"])
    func `foreign files are not replaced`(name: String) async throws {
        let folder = try TemporaryFolder()
        _ = try folder.write("gateway: mine\n", to: name)
        let (code, explanation) = try await refusal("--keep", folder.path)
        #expect(code == 73)
        #expect(explanation.contains("/\(name) was not written by a simulation, and is not replaced; "))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [name])
        #expect(try String(contentsOfFile: folder.file(name), encoding: .utf8) == "gateway: mine\n")
    }

    @Test func `devices whose profiles must be named have them in the configuration`() async throws {
        let folder = try TemporaryFolder()
        let run = try Run(["--keep", folder.path, "records"])
        try await eventually { run.output.text.contains("sqlite3 ") || run.child.exitStatus != nil }
        let text = try String(contentsOfFile: folder.file("gattherd.yaml"), encoding: .utf8)
        #expect(text.contains("{name: aranet, address: C0:FF:EE:00:01:03, profiles: [aranet-history]}"), "\(text)")
        #expect(text.contains("{name: tag, address: C0:FF:EE:00:01:04, profiles: [ruuvi-log]}"))
        run.child.signal(SIGINT)
        #expect(await run.child.wait() == .exited(0))
    }

    @Test func `files of an earlier simulation are replaced`() async throws {
        let folder = try TemporaryFolder()
        for _ in 0..<2 {
            let run = try Run(["--keep", folder.path])
            try await eventually { run.output.text.contains("sqlite3 ") || run.child.exitStatus != nil }
            run.child.signal(SIGINT)
            #expect(await run.child.wait() == .exited(0))
        }
    }

    @Test func `a scenario that comes with gattherd is found by its name`() async throws {
        let folder = try TemporaryFolder()
        try folder.write("gateway: mine\n", to: "gattherd.yaml")
        let keep = ["--keep", folder.path]
        let errors = folder.file("err")
        // The folder, which is not of a simulation, is refused after the scenario was read.
        let known = try await Programs.run(Programs.path("gattherd"), ["simulate", "fleet"] + keep, errors: errors)
        #expect(known.0 == 73)
        let unknown = try await Programs.run(Programs.path("gattherd"), ["simulate", "fleat"] + keep, errors: errors)
        #expect(unknown.0 == 66)
        let message = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(message.contains("cannot read fleat: No such file or directory; gattherd comes with faults, fleet, "))
    }

    @Test(arguments: ["nowhere.yaml", "peripherals: [{name: a}]", "peripherals: []"])
    func `an invalid scenario is reported at once`(scenario: String) async throws {
        let folder = try TemporaryFolder()
        let path = scenario.contains(":") ? try folder.write(scenario, to: "s.yaml") : folder.file(scenario)
        let (code, output) = try await Programs.run(Programs.path("gattherd"), ["simulate", path])
        #expect(code == (scenario.contains(":") ? 65 : 66))
        #expect(output.isEmpty)
    }
}
