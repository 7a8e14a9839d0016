import Foundation
import GattherdProcess
import TestKit
import Testing

/// `gattherd run` with an unusable place for its history.
@Suite(.timeLimit(.minutes(2))) struct HistoryPlaceTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Starts a daemon with its own runtime directory and without Bluetooth.
    private func daemon(_ name: String, history: String) throws -> (child: ChildProcess, log: OutputFile) {
        let configuration = try folder.write(
            """
            bluetooth: {bus: "unix:path=/nonexistent"}
            history: {path: \(history)}
            devices: [{name: strap, address: C0:FF:EE:00:00:01}]
            """,
            to: name + ".yaml"
        )
        try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: false)
        let log = try OutputFile(folder.file(name + ".log"))
        let child = try ChildProcess(
            Programs.path("gattherd"),
            ["run", "--config", configuration],
            environment: ["RUNTIME_DIRECTORY=" + folder.file(name)],
            output: .descriptor(log.descriptor),
            errors: .descriptor(log.descriptor)
        )
        return (child, log)
    }

    @Test func `a second daemon on one history is refused with the reason`() async throws {
        let history = folder.file("gattherd.db")
        let first = try daemon("first", history: history)
        try await eventually { first.log.text.contains(#""message":"started""#) }
        let second = try daemon("second", history: history)
        #expect(await second.child.wait() == .exited(73))
        let refusal = "another gattherd uses this history; stop it, or choose another history.path"
        #expect(second.log.text == "gattherd: \(history)-lock: \(refusal)\n")
        first.child.signal(SIGTERM)
        #expect(await first.child.wait() == .exited(0))
        #expect(try await SQLiteShell(history).value("SELECT count(*) > 0 FROM events") == "1")
    }

    @Test func `a missing folder is named with the remedy`() async throws {
        let history = folder.file("nowhere/gattherd.db")
        let daemon = try daemon("one", history: history)
        #expect(await daemon.child.wait() == .exited(73))
        #expect(
            daemon.log.text
                == "gattherd: \(history): the folder of history.path does not exist; "
                + "create it, or correct the path\n"
        )
    }

    @Test(.enabled(if: SmallFileSystem.isPossible))
    func `on a read-only disk the daemon runs and writes as soon as it can`() async throws {
        let disk = try SmallFileSystem(kibibytes: 4096)
        #expect(disk.setReadOnly(true))
        let history = disk.path + "/gattherd.db"
        let daemon = try daemon("one", history: history)
        try await eventually { daemon.log.text.contains(#""message":"started""#) }
        #expect(daemon.log.text.contains("Read-only file system; mount the file system writable"))
        #expect(disk.setReadOnly(false))
        try await eventually { daemon.log.text.contains("history can be written again") }
        daemon.child.signal(SIGTERM)
        #expect(await daemon.child.wait() == .exited(0))
        #expect(try await SQLiteShell(history).value("SELECT count(*) > 0 FROM events") == "1")
    }
}
