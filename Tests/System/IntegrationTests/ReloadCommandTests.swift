import Foundation
import GattherdProcess
import TestKit
import Testing

/// Changes of the configuration of a running daemon, and the commands after them.
@Suite(.timeLimit(.minutes(2))) struct ReloadCommandTests {
    private struct Outcome {
        let code: Int32
        let output: String
        let complaints: String
    }

    private let folder: TemporaryFolder
    private let daemon: ChildProcess

    init() async throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        try folder.write(Self.text(in: folder), to: "gattherd.yaml")
        let configuration = ["--config", folder.file("gattherd.yaml")]
        daemon = try ChildProcess(Programs.path("gattherd"), ["run"] + configuration, errors: .null)
        // The socket exists early in the daemon's start; the device has a state only after it.
        try await eventually {
            try await Programs.run(Programs.path("gattherd"), ["status"] + configuration).1.contains("strap")
        }
    }

    private static func text(in folder: TemporaryFolder, _ more: String = "") -> String {
        """
        gateway: test
        bluetooth: {bus: "unix:path=\(folder.file("no-bus"))"}
        devices: [{name: strap, address: "C0:FF:EE:00:00:01"}]
        history: {path: elsewhere.db}
        \(more)
        """
    }

    private func write(_ more: String) throws {
        try folder.write(Self.text(in: folder, more), to: "gattherd.yaml")
    }

    private func run(_ words: String...) async throws -> Outcome {
        let errors = folder.file("errors-\(UUID())")
        let arguments = words + ["--config", folder.file("gattherd.yaml")]
        let (code, output) = try await Programs.run(Programs.path("gattherd"), arguments, errors: errors)
        return Outcome(code: code, output: output, complaints: try String(contentsOfFile: errors, encoding: .utf8))
    }

    private func stop() async {
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }

    @Test func `a reload reports what waits for a restart, and so does the status`()
        async throws
    {
        #expect(try await run("reload").output == "the configuration was reloaded\n")
        try write("http: {listen: \"127.0.0.1:1\"}\nlog: {level: warning}")
        let reload = try await run("reload")
        #expect(reload.code == 0)
        #expect(reload.output.contains("changes of http take effect only at a restart: systemctl restart gattherd"))
        #expect(try await run("status").output.contains("\nconfig     changes of http wait for a restart: systemctl"))
        #expect(try await run("status", "--json").output.contains(#""configuration":{"restart_needed":["http"]}"#))
        try write("")
        #expect(try await run("reload").output == "the configuration was reloaded\n")
        #expect(!(try await run("status").output.contains("\nconfig ")))
        await stop()
    }

    @Test func `a reload of a wrong file fails with all errors, and the status shows it`() async throws {
        try write("zzz: 1")
        let reload = try await run("reload")
        #expect(reload.code == 78)
        #expect(reload.complaints.contains("gattherd.yaml:5:1: error: "))
        let status = try await run("status")
        #expect(status.output.contains("\nconfig     the configuration was not reloaded: "))
        #expect(status.output.contains("run: gattherd check \(folder.file("gattherd.yaml"))"))
        await stop()
    }

    @Test func `mistakes are logged and stored without lines of the file, which may have secrets`() async throws {
        try write("mqtt: {url: \"mqtt://127.0.0.1:1\", passwd: hunter2}")
        #expect(try await run("reload").code == 78)
        let history = SQLiteShell(folder.file("elsewhere.db"))
        let details = "SELECT group_concat(detail) FROM events WHERE kind = 'daemon'"
        try await eventually { try await history.value(details).contains("unknown key 'passwd'") }
        #expect(!(try await history.value(details).contains("hunter2")))
        let start = try await run("run")
        #expect(start.code == 78)
        #expect(start.complaints.contains("unknown key 'passwd'") && !start.complaints.contains("hunter2"))
        await stop()
    }

    @Test(
        arguments: ["zzz: 1", "devices: [{", "gateway: [", "history: {keep: {samples: never}}"]
    )
    func `commands reach the daemon while its file is wrong, and warn`(more: String) async throws {
        try write(more)
        for words in [["status"], ["status", "--json"], ["why", "strap"]] {
            let arguments = words + ["--config", folder.file("gattherd.yaml")]
            let errors = folder.file("errors-\(UUID())")
            let (code, output) = try await Programs.run(Programs.path("gattherd"), arguments, errors: errors)
            let complaints = try String(contentsOfFile: errors, encoding: .utf8)
            #expect(code == 0, "\(words): \(complaints)")
            #expect(output.contains("strap"))
            #expect(complaints.contains("the configuration is wrong, and the daemon keeps the last valid one"))
            #expect(complaints.contains("gattherd.yaml:"))
        }
        await stop()
    }

    @Test func `a missing file is an error where only it names the history`() async throws {
        try FileManager.default.removeItem(atPath: folder.file("gattherd.yaml"))
        let status = try await run("status")
        #expect(status.code == 78)
        #expect(status.complaints.contains("No such file"))
        #expect(status.complaints.contains("no daemon is found; correct the configuration"))
        await stop()
    }

    @Test func `a failed reload keeps the sections that wait for a restart`() async throws {
        try write("http: {listen: \"127.0.0.1:1\"}")
        #expect(try await run("reload").code == 0)
        try write("zzz: 1")
        #expect(try await run("reload").code == 78)
        let status = try await run("status", "--json")
        #expect(status.output.contains(#""restart_needed":["http"]"#))
        await stop()
    }

    @Test(arguments: [
        "http: {listen: \"127.0.0.1:1\", token_file: missing}",
        "mqtt: {url: \"mqtt://127.0.0.1:1\", username: u, password_file: missing}",
    ])
    func `a reload refuses a file that a restart would refuse`(more: String) async throws {
        try write(more)
        let reload = try await run("reload")
        #expect(reload.code == 78)
        #expect(reload.complaints.contains("missing': No such file or directory"))
        await stop()
    }

    @Test func `why explains that a wrong configuration keeps the daemon from starting`() async throws {
        await stop()
        try write("zzz: 1")
        let why = try await run("why", "strap")
        #expect(why.code == 78)
        #expect(why.output.contains("the configuration is wrong, so the daemon cannot start: "))
        #expect(why.output.contains("correct the configuration (gattherd check \(folder.file("gattherd.yaml")))"))
        #expect(!why.complaints.contains("keeps the last valid one"))
    }

    @Test(arguments: ["C0:FF:EE:00:00:01", "c0:ff:ee:00:00:01", "c0-ff-ee-00-00-01", "c0ffee000001"])
    func `why takes the address of the device in any notation`(address: String) async throws {
        let why = try await run("why", address)
        #expect(why.code == 0 && why.output.hasPrefix("strap (C0:FF:EE:00:00:01"), "\(why.complaints)")
        await stop()
    }

    @Test(arguments: ["C0:FF:EE:00:00:01", "c0-ff-ee-00-00-01", "c0ffee000001"])
    func `connect, disconnect and set take the address of the device in any notation`(address: String) async throws {
        let disconnect = try await run("disconnect", address)
        #expect(disconnect.output.hasPrefix("strap will be disconnected"), "\(disconnect.complaints)")
        #expect(try await run("connect", address).output == "strap will be connected\n")
        let set = try await run("set", address, "number", "1")
        #expect(set.code == 65 && set.complaints.contains("strap") && !set.complaints.contains(address))
        let other = try await run("connect", "C0:FF:EE:00:00:02")
        #expect(other.code == 65 && other.complaints.contains("C0:FF:EE:00:00:02"))
        await stop()
    }

    @Test func `why shows the reason of a failed reload`() async throws {
        try write("zzz: 1")
        #expect(try await run("reload").code == 78)
        try write("")
        try await eventually {
            try await run("why", "strap").output.contains("the configuration was not reloaded: \(folder.path)")
        }
        await stop()
    }

    @Test func `history is read although another section is wrong`() async throws {
        await stop()
        try write("devices: [{")
        let history = try await run("history")
        #expect(history.code == 0)
        #expect(history.complaints.contains("the configuration has errors"))
        try folder.write("history: {path: [\n", to: "gattherd.yaml")
        #expect(try await run("history").code == 78)
    }

    @Test func `without a daemon the commands report a wrong file`() async throws {
        await stop()
        try write("zzz: 1")
        for command in ["status", "reload"] {
            let outcome = try await run(command)
            #expect(outcome.code == 78)
            #expect(outcome.complaints.contains("unknown key 'zzz'"))
        }
        try write("")
        #expect(try await run("reload").code == 69)
    }
}
