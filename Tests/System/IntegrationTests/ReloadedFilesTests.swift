import Foundation
import GattherdProcess
import TestKit
import Testing

/// Changes of files that the configuration names, while the daemon runs.
@Suite(.timeLimit(.minutes(2))) struct ReloadedFilesTests {
    private let folder: TemporaryFolder
    private let port: Int
    private let daemon: ChildProcess

    init() async throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        port = try Broker.freePort()
        try folder.write(Self.token("a"), to: "token")
        try folder.write("first\n", to: "password")
        let text = """
            gateway: test
            bluetooth: {bus: "unix:path=\(folder.file("no-bus"))"}
            devices: [{name: strap, address: "C0:FF:EE:00:00:01"}]
            http: {listen: "127.0.0.1:\(port)", token_file: token}
            mqtt: {url: "mqtt://127.0.0.1:1", username: u, password_file: password}
            """
        let configuration = ["--config", try folder.write(text, to: "gattherd.yaml")]
        daemon = try ChildProcess(Programs.path("gattherd"), ["run"] + configuration, errors: .null)
        // The socket exists early in the daemon's start; the device has a state only after it.
        try await eventually {
            try await Programs.run(Programs.path("gattherd"), ["status"] + configuration).1.contains("strap")
        }
    }

    private static func token(_ letter: Character) -> String { String(repeating: letter, count: 64) + "\n" }

    private func reload() async throws -> String {
        let arguments = ["reload", "--config", folder.file("gattherd.yaml")]
        return try await Programs.run(Programs.path("gattherd"), arguments).1
    }

    private func stop() async {
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }

    /// Returns the HTTP status of a write with a token.
    private func write(_ letter: Character) throws -> Int {
        let client = try RawClient(UInt16(port))
        let token = Self.token(letter).dropLast()
        client.send(
            "POST /api/v1/devices/strap/disconnect HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n"
                + "Authorization: Bearer \(token)\r\n\r\n"
        )
        return client.readAnswer().status
    }

    @Test func `a reload reads the token again`() async throws {
        try await eventually { (try? RawClient(UInt16(port))) != nil }
        #expect(try write("a") < 300)
        #expect(try write("b") == 401)
        try folder.write(Self.token("b"), to: "token")
        #expect(try await reload() == "the configuration was reloaded\n")
        #expect(try write("a") == 401)
        #expect(try write("b") < 300)
        await stop()
    }

    @Test func `commands reach the daemon while its file is away`() async throws {
        let file = folder.file("gattherd.yaml")
        try FileManager.default.removeItem(atPath: file)
        let (code, output) = try await Programs.run(Programs.path("gattherd"), ["status", "--config", file])
        #expect(code == 0 && output.contains("strap"))
        await stop()
    }

    @Test func `a changed password waits for a restart`() async throws {
        #expect(try await reload() == "the configuration was reloaded\n")
        try folder.write("second one\n", to: "password")
        #expect(try await reload().contains("changes of mqtt take effect only at a restart"))
        await stop()
    }
}
