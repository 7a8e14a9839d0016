import Foundation
import TestKit
import Testing

/// Secrets that commands of root send to servers of the configuration.
@Suite(.timeLimit(.minutes(2)), .enabled(if: getuid() == 0, "needs root"))
struct SecretAccessTests {
    private static let daemon: uid_t = 65_534

    private let folder: TemporaryFolder

    /// Writes a configuration with a secret, and a folder of history that belongs to the daemon.
    init() throws {
        folder = try TemporaryFolder()
        #expect(unsafe chmod(folder.path, 0o755) == 0)
        let state = folder.file("state")
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        #expect(unsafe chown(state, Self.daemon, Self.daemon) == 0)
        let text = """
            history: {path: state/gattherd.db}
            bluetooth: {bus: "unix:path=/nowhere"}
            mqtt:
              url: mqtt://127.0.0.1:1
              username: me
              password_file: secret
              home_assistant: {statistics: {url: "http://127.0.0.1:1", token_file: secret}}
            """
        try folder.write(text, to: "gattherd.yaml")
        try folder.write("hush\n", to: "secret")
    }

    private func run(_ words: String...) async throws -> (code: Int32, output: String) {
        let arguments = words + ["--config", folder.file("gattherd.yaml")]
        return try await Programs.run(Programs.path("gattherd"), arguments, errors: folder.file("errors"))
    }

    @Test(arguments: [(mode_t(0o600), false), (0o640, false), (0o644, true)])
    func `a secret that the service cannot read is sent to no server`(mode: mode_t, isReadable: Bool) async throws {
        #expect(unsafe chmod(folder.file("secret"), mode) == 0)
        let findings = try await run("doctor", "--json").output
        #expect(findings.contains(#""check":"broker""#) == isReadable)
        let code = try await run("homeassistant", "statistics", "--since", "1d").code
        #expect((code == 78) == !isReadable)
    }
}
