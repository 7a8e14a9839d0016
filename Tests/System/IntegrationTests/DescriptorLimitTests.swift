import Foundation
import GattherdProcess
import Glibc
import TestKit
import Testing

/// `gattherd run` with a low limit of open files.
@Suite(.timeLimit(.minutes(1))) struct DescriptorLimitTests {
    private let folder: TemporaryFolder
    private let errors: OutputFile

    init() throws {
        folder = try TemporaryFolder()
        errors = try OutputFile(folder.file("err"))
    }

    /// Starts a daemon by a shell that sets the limit.
    private func daemon(_ limit: String) throws -> ChildProcess {
        let text = """
            bluetooth: {bus: "unix:path=/nonexistent"}
            history: {path: \(folder.file("history.db"))}
            log: {format: json}
            """
        let configuration = try folder.write(text, to: "gattherd.yaml")
        let program = Programs.path("gattherd")
        return try ChildProcess(
            "/bin/sh",
            ["-c", "ulimit \(limit) && exec '\(program)' run --config '\(configuration)'"],
            errors: .descriptor(errors.descriptor)
        )
    }

    @Test(arguments: [10, 20, 100]) func `the error about a low file limit names the remedy`(limit: Int) async throws {
        let daemon = try daemon("-n \(limit)")
        #expect(await daemon.wait() == .exited(73))
        #expect(errors.text.hasPrefix("gattherd: only ") && errors.text.contains("raise LimitNOFILE= of the service"))
        #expect(!FileManager.default.fileExists(atPath: folder.file("history.db")))
    }

    @Test func `a low limit that the system permits to raise is raised`() async throws {
        let daemon = try daemon("-S -n 20")
        try await eventually { errors.text.contains(#""message":"started""#) }
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }
}
