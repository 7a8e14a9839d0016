import Foundation
import GattherdProcess
import TestKit
import Testing

/// `gattherd config set` and `config unset` on the command line.
@Suite(.timeLimit(.minutes(2))) struct ConfigSetCommandTests {
    private struct Outcome {
        let code: Int32
        let output: String
        let complaints: String
    }

    private static let header = "# Set by gattherd config set.\n"
    private static let advice = "no daemon runs with this configuration; start it: systemctl enable --now gattherd"

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        let text = """
            bluetooth: {bus: "unix:path=\(folder.file("no-bus"))"}
            devices: [{name: strap, address: "C0:FF:EE:00:00:01"}]
            profiles:
            """
        try folder.write(text, to: "gattherd.yaml")
    }

    private func run(_ words: [String]) async throws -> Outcome {
        let errors = folder.file("errors-\(UUID())")
        let arguments = words + ["--config", folder.file("gattherd.yaml")]
        let (code, output) = try await Programs.run(Programs.path("gattherd"), arguments, errors: errors)
        return Outcome(code: code, output: output, complaints: try String(contentsOfFile: errors, encoding: .utf8))
    }

    private func set(_ words: String...) async throws -> Outcome { try await run(["config", "set", "--yes"] + words) }

    private func unset(_ words: String...) async throws -> Outcome {
        try await run(["config", "unset", "--yes"] + words)
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: folder.file("gattherd.d/\(name).yaml"), encoding: .utf8)
    }

    private func wrote(_ name: String) -> String { "wrote \(folder.file("gattherd.d/\(name).yaml"))\n" }
    private func deleted(_ name: String) -> String { "deleted \(folder.file("gattherd.d/\(name).yaml"))\n" }

    @Test func `a running daemon takes the keys, and the command says what needs a restart`() async throws {
        let file = folder.file("gattherd.yaml")
        let daemon = try ChildProcess(Programs.path("gattherd"), ["run", "--config", file], errors: .null)
        defer { daemon.signal(SIGKILL) }
        // The device has a state only after the daemon's start, in which the socket appears early.
        try await eventually { try await run(["status"]).output.contains("strap") }
        let level = try await set("log.level=warning")
        #expect(level.output == wrote("log") + "the configuration was reloaded\n", "\(level.complaints)")
        let standard = try await unset("log.level")
        #expect(standard.output == deleted("log") + "the configuration was reloaded\n", "\(standard.complaints)")
        let broker = try await set("mqtt.url=mqtt://127.0.0.1:1", "gateway=attic")
        #expect(broker.output.hasPrefix(wrote("gateway") + wrote("mqtt")), "\(broker.complaints)")
        #expect(broker.output.contains("changes of gateway and mqtt take effect only at a restart"))
        // The socket stays where it is until the restart.
        let history = try await set("history.path=moved.db")
        #expect(history.output.contains("changes of gateway, history and mqtt take effect"), "\(history.complaints)")
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }

    @Test func `a warning about the new file is shown`() async throws {
        let path = folder.file("missing/out.jsonl")
        let lines = try await set("lines.path=\(path)")
        #expect(lines.code == 0 && lines.output.hasPrefix(wrote("lines")), "\(lines.complaints)")
        #expect(lines.complaints.contains("lines.yaml:3:9: warning: '\(path)' cannot be written: "))
        let level = try await set("log.level=warning")
        #expect(!level.complaints.contains("warning: "), "\(level.complaints)")
    }

    @Test func `a key is set beside the others of its file`() async throws {
        let first = try await set("mqtt.url=mqtt://127.0.0.1:1", "mqtt.version=5")
        #expect(first.code == 0, "\(first.complaints)")
        #expect(first.output == wrote("mqtt") + "\(Self.advice)\n")
        #expect(first.complaints == Self.header + "mqtt:\n  url: 'mqtt://127.0.0.1:1'\n  version: 5\n")
        #expect(try await set("mqtt.version=3.1.1", "mqtt.publish.qos=0").code == 0)
        let mqtt = "mqtt:\n  url: 'mqtt://127.0.0.1:1'\n  version: '3.1.1'\n  publish:\n    qos: 0\n"
        #expect(try text("mqtt") == Self.header + mqtt)
        let wrong = try await set("mqtt.publish.qos=7")
        #expect(wrong.code == 78, "\(wrong.complaints)")
        #expect(wrong.complaints.contains("mqtt.yaml:6:10: error: '7' is not"), "\(wrong.complaints)")
        #expect(try text("mqtt") == Self.header + mqtt)
        let check = try await run(["check"])
        #expect(check.code == 0, "\(check.complaints)")
    }

    @Test(
        arguments: [
            (["mqtt.ulr=mqtt://a"], 78, "mqtt.yaml:3:3: error: unknown key 'ulr' in 'mqtt'; did you mean 'url'?"),
            (["mqqt.url=mqtt://a"], 78, "unknown key 'mqqt' in the configuration; did you mean 'mqtt'?"),
            (["http.token_file=token"], 78, "'http' needs the key 'listen'"),
            (["log.level=warning", "gateway=The Attic"], 78, "gateway.yaml:2:10: error: 'The Attic' is not"),
            (["http.listen=127.0.0.1:1", "http.hosts=a"], 78, "this is a text, but it must be a list"),
            (["http.listen=127.0.0.1:1", "http.token_file=none"], 78, "none': No such file or directory"),
            (["devices.name=x"], 64, "'devices' is a list; gattherd add ADDRESS adds a device"),
            (["alerts.name=x"], 64, "'alerts' is a list; write it into"),
            (["mqtt.url"], 64, "'mqtt.url' has no '='; write KEY=VALUE"),
            (["bluetooth.rotate=5m"], 73, "gattherd.yaml:1: 'bluetooth' is set in this file; change this file"),
        ] as [([String], Int32, String)]
    )
    func `a mistake is reported, and nothing is written`(words: [String], code: Int32, message: String) async throws {
        let outcome = try await run(["config", "set", "--yes"] + words)
        #expect(outcome.code == code && outcome.output.isEmpty)
        #expect(outcome.complaints.contains(message), "\(outcome.complaints)")
        #expect(!FileManager.default.fileExists(atPath: folder.file("gattherd.d")))
    }

    @Test func `a removed key has its default, and a file without keys is deleted`() async throws {
        #expect(try await set("mqtt.url=mqtt://127.0.0.1:1", "mqtt.publish.qos=0", "gateway=attic").code == 0)
        let first = try await unset("mqtt.publish.qos", "gateway")
        #expect(first.code == 0, "\(first.complaints)")
        #expect(first.output == deleted("gateway") + wrote("mqtt") + "\(Self.advice)\n")
        let mqtt = Self.header + "mqtt:\n  url: 'mqtt://127.0.0.1:1'\n"
        #expect(first.complaints == mqtt)
        #expect(try text("mqtt") == mqtt)
        let whole = try await unset("mqtt")
        #expect(whole.output == deleted("mqtt") + "\(Self.advice)\n", "\(whole.complaints)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("gattherd.d")).isEmpty)
    }

    @Test(
        arguments: [
            (["mqtt.url"], 78, "'mqtt' needs the key 'url'"),
            (["mqtt.ulr"], 65, "'mqtt.ulr' is not set: "), (["mqtt.ulr"], 65, "mqtt.yaml has mqtt.url, mqtt.version;"),
            (["mqtt.version", "log.level"], 65, "'log.level' is not set: no file has 'log'; docs/configuration.md"),
            (["mqtt.version=5"], 64, "'mqtt.version=5' is not a key"),
            (["devices"], 64, "'devices' is a list; remove entries by hand"),
            (["bluetooth.bus"], 73, "gattherd.yaml:1: 'bluetooth' is set in this file; change this file"),
        ] as [([String], Int32, String)]
    )
    func `after a mistake nothing is removed`(words: [String], code: Int32, message: String) async throws {
        #expect(try await set("mqtt.url=mqtt://127.0.0.1:1", "mqtt.version=5").code == 0)
        let before = try text("mqtt")
        let outcome = try await run(["config", "unset", "--yes"] + words)
        #expect(outcome.code == code && outcome.output.isEmpty)
        #expect(outcome.complaints.contains(message), "\(outcome.complaints)")
        #expect(try text("mqtt") == before)
    }

    @Test func `control characters of a file are not printed`() async throws {
        try FileManager.default.createDirectory(atPath: folder.file("gattherd.d"), withIntermediateDirectories: true)
        try folder.write(#""a\e[31mb": 1"#, to: "gattherd.d/log.yaml")
        let outcome = try await set("log.level=warning")
        #expect(outcome.code == 73)
        #expect(outcome.complaints.contains("log.yaml:1: the file has another key, 'a\u{FFFD}[31mb'"))
    }

    @Test func `a file with comments stays as it is`() async throws {
        try FileManager.default.createDirectory(atPath: folder.file("gattherd.d"), withIntermediateDirectories: true)
        try folder.write("log:\n  level: info # for now\n", to: "gattherd.d/log.yaml")
        let outcome = try await set("log.level=warning")
        #expect(outcome.code == 73)
        #expect(outcome.complaints.contains("log.yaml:2: a comment would be lost; change this file by hand"))
        #expect(try text("log") == "log:\n  level: info # for now\n")
    }
}
