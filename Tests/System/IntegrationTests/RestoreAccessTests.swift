import Foundation
import GattherdHistory
import TestKit
import Testing

/// Restores by root for a daemon that runs as another user.
@Suite(.timeLimit(.minutes(2)), .enabled(if: getuid() == 0, "needs root"))
struct RestoreAccessTests {
    private static let daemon: uid_t = 65_534

    private let new: TemporaryFolder
    private let archive: String
    private let old: HistoryFolder

    /// Writes a backup whose secret only its owner can read, and a folder of history that belongs to the daemon.
    init() async throws {
        (old, new) = (try await HistoryFolder(seconds: 60), try TemporaryFolder())
        archive = old.folder.file("backup.tar")
        let text = """
            gateway: attic
            history: {path: state/gattherd.db}
            mqtt: {url: "mqtt://localhost", username: me, password_file: secret}
            sparkplug: {url: "mqtt://localhost"}
            """
        try old.folder.write(text, to: "gattherd.yaml")
        try old.folder.write("hush\n", to: "secret")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: old.folder.file("secret"))
        try FileManager.default.createDirectory(atPath: old.folder.file("state"), withIntermediateDirectories: true)
        try FileManager.default.moveItem(atPath: old.database, toPath: old.folder.file("state/gattherd.db"))
        try old.folder.write("mqtt://localhost:1883 gattherd/attic\n", to: "state/mqtt-base-topics")
        try old.folder.write("7\n", to: "state/sparkplug-bdseq")
        #expect(try await run("backup", in: old.folder) == 0)
        #expect(unsafe chmod(new.path, 0o755) == 0)
    }

    private func run(_ command: String, in folder: TemporaryFolder) async throws -> Int32 {
        let words = [command, archive, "--config", folder.file("gattherd.yaml")]
        return try await Programs.run(Programs.path("gattherd"), words, errors: folder.file("errors")).0
    }

    private func makeState() throws {
        try FileManager.default.createDirectory(atPath: new.file("state"), withIntermediateDirectories: true)
        #expect(unsafe chown(new.file("state"), Self.daemon, Self.daemon) == 0)
    }

    private func status(_ name: String) -> stat {
        var status = stat()
        #expect(unsafe lstat(new.file(name), &status) == 0, "\(name)")
        return status
    }

    @Test func `the daemon can read restored secrets, and owns what is beside history`() async throws {
        try makeState()
        #expect(try await run("restore", in: new) == 0)
        for name in ["gattherd.yaml", "secret"] {
            let status = status(name)
            #expect(status.st_uid == 0 && status.st_gid == Self.daemon && status.st_mode & 0o070 == 0o040, "\(name)")
        }
        #expect(status("secret").st_mode & 0o777 == 0o640)
        for name in ["gattherd.db", "gattherd.db-lock", "mqtt-base-topics", "sparkplug-bdseq"] {
            #expect(status("state/" + name).st_uid == Self.daemon, "\(name)")
        }
        #expect(try HistoryReader(path: new.file("state/gattherd.db")).contents().samples == 62)
    }

    @Test func `a file with the same content gets its access too`() async throws {
        try makeState()
        try new.write("hush\n", to: "secret")
        #expect(unsafe chmod(new.file("secret"), 0o600) == 0)
        #expect(try await run("restore", in: new) == 0)
        #expect(status("secret").st_gid == Self.daemon && status("secret").st_mode & 0o777 == 0o640)
    }

    @Test func `a missing folder of history is made`() async throws {
        #expect(try await run("restore", in: new) == 0)
        #expect(status("state").st_mode & 0o777 == 0o750)
        #expect(try HistoryReader(path: new.file("state/gattherd.db")).contents().samples == 62)
    }

    @Test(arguments: ["mqtt-base-topics.restore", "gattherd.db-seq.new", "gattherd.db.restore"])
    func `links of the daemon's user lead root nowhere`(name: String) async throws {
        try makeState()
        let victim = try new.write("root's\n", to: "victim")
        #expect(unsafe symlink(victim, new.file("state/" + name)) == 0)
        _ = try await run("restore", in: new)
        #expect(try String(contentsOfFile: victim, encoding: .utf8) == "root's\n")
        #expect(status("victim").st_uid == 0)
    }

    @Test func `a link in the place of the state of an output is not saved`() async throws {
        try FileManager.default.removeItem(atPath: archive)
        try FileManager.default.removeItem(atPath: old.folder.file("state/sparkplug-bdseq"))
        #expect(unsafe symlink("/etc/hostname", old.folder.file("state/sparkplug-bdseq")) == 0)
        #expect(unsafe symlink("/etc/hostname", old.folder.file("state/other-bdseq")) == 0)
        #expect(try await run("backup", in: old.folder) == 74)
        #expect(!FileManager.default.fileExists(atPath: archive))
    }
}
