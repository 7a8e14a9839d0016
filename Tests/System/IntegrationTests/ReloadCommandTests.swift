import Foundation
import GattherdProcess
import TestKit
import Testing

/// A daemon whose configuration is edited while it runs, and the commands that people then use.
@Suite("A changed configuration", .timeLimit(.minutes(2))) struct ReloadCommandTests {
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
        daemon = try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", folder.file("gattherd.yaml")],
            errors: .null
        )
        try await eventually { FileManager.default.fileExists(atPath: folder.file("gattherd.db.sock")) }
    }

    private static func text(in folder: TemporaryFolder, _ more: String = "") -> String {
        """
        gateway: test
        bluetooth: {bus: "unix:path=\(folder.file("no-bus"))"}
        devices: [{name: strap, address: "C0:FF:EE:00:00:01"}]
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

    @Test func `A reload says that it is done, and what waits for a restart; the status says it until then`()
        async throws
    {
        #expect(try await run("reload").output == "the configuration is reloaded\n")
        try write("http: {listen: \"127.0.0.1:1\"}\nlog: {level: warning}")
        let reload = try await run("reload")
        #expect(reload.code == 0)
        #expect(reload.output.contains("changes of http take effect only at a restart: systemctl restart gattherd"))
        #expect(try await run("status").output.contains("\nconfig     changes of http wait for a restart: systemctl"))
        #expect(try await run("status", "--json").output.contains(#""configuration":{"restart_needed":["http"]}"#))
        try write("")
        #expect(try await run("reload").output == "the configuration is reloaded\n")
        #expect(!(try await run("status").output.contains("\nconfig ")))
        await stop()
    }

    @Test func `A reload of a wrong file fails with all that is wrong, and the status says so`() async throws {
        try write("zzz: 1")
        let reload = try await run("reload")
        #expect(reload.code == 78)
        #expect(reload.complaints.contains("gattherd.yaml:4:1: error: "))
        let status = try await run("status")
        #expect(status.output.contains("\nconfig     was not reloaded, gattherd check says more: "))
        await stop()
    }

    @Test(
        "Commands reach the daemon while its file is wrong, and say that it is",
        arguments: ["zzz: 1", "devices: [{", "gateway: [", "history: {keep: {samples: never}}"]
    )
    func wrongFile(more: String) async throws {
        try write(more)
        for words in [["status"], ["status", "--json"], ["why", "strap"]] {
            let arguments = words + ["--config", folder.file("gattherd.yaml")]
            let errors = folder.file("errors-\(UUID())")
            let (code, output) = try await Programs.run(Programs.path("gattherd"), arguments, errors: errors)
            let complaints = try String(contentsOfFile: errors, encoding: .utf8)
            #expect(code == 0, "\(words): \(complaints)")
            #expect(output.contains("strap"))
            #expect(complaints.contains("the configuration is wrong, and the daemon goes on with what it read before"))
            #expect(complaints.contains("gattherd.yaml:"))
        }
        await stop()
    }

    @Test func `Commands reach the daemon while its file is away`() async throws {
        try FileManager.default.removeItem(atPath: folder.file("gattherd.yaml"))
        let status = try await run("status")
        #expect(status.code == 0)
        #expect(status.output.contains("strap"))
        await stop()
        let later = try await run("status")
        #expect(later.code == 78)
        #expect(later.complaints.contains("No such file"))
    }

    @Test func `Without a daemon a wrong file is what the commands tell of`() async throws {
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
