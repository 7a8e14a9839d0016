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

    @Test func `a file with unchanged content gets its owner and permissions as well`() async throws {
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

    private func runOnDatabase(_ words: String...) async throws -> Int32 {
        let database = ["--database", new.file("state/gattherd.db")]
        return try await Programs.run(Programs.path("gattherd"), words + database, errors: new.file("errors")).0
    }

    @Test func `a backup of root's is restored, and then belongs to the daemon`() async throws {
        try makeState()
        let backup = old.folder.file("state/gattherd.db")
        #expect(unsafe chmod(backup, 0o600) == 0)
        #expect(try await runOnDatabase("db", "restore", backup) == 0)
        #expect(status("state/gattherd.db").st_uid == Self.daemon)
        #expect(try await runOnDatabase("db", "check", "--repair") == 0)
        #expect(try await runOnDatabase("db", "compact") == 0)
        #expect(try HistoryReader(path: new.file("state/gattherd.db")).contents().samples == 62)
    }

    @Test(arguments: [["db", "restore"], ["db", "compact"], ["db", "check", "--repair"], ["import"]])
    func `a database that the daemon's user links to a file of root's is not changed`(words: [String]) async throws {
        try makeState()
        try FileManager.default.createDirectory(atPath: new.file("roots"), withIntermediateDirectories: true)
        let victim = new.file("roots/victim.db")
        try FileManager.default.copyItem(atPath: old.folder.file("state/gattherd.db"), toPath: victim)
        #expect(unsafe chmod(victim, 0o600) == 0)
        #expect(unsafe symlink(victim, new.file("state/gattherd.db")) == 0)
        let before = try Data(contentsOf: URL(filePath: victim))
        let lines = try new.write("strap,metric=value v=1 1000\n", to: "lines")
        let operand = ["restore": [old.folder.file("state/gattherd.db")], "import": [lines]][words.last ?? ""] ?? []
        let database = ["--database", new.file("state/gattherd.db")]
        let path = Programs.path("gattherd")
        #expect(try await Programs.run(path, words + operand + database, errors: new.file("errors")).0 != 0)
        #expect(try Data(contentsOf: URL(filePath: victim)) == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: new.file("roots")) == ["victim.db"])
    }

    @Test func `a symbolic link at the path of an output's state is not saved`() async throws {
        try FileManager.default.removeItem(atPath: archive)
        try FileManager.default.removeItem(atPath: old.folder.file("state/sparkplug-bdseq"))
        #expect(unsafe symlink("/etc/hostname", old.folder.file("state/sparkplug-bdseq")) == 0)
        #expect(unsafe symlink("/etc/hostname", old.folder.file("state/other-bdseq")) == 0)
        #expect(try await run("backup", in: old.folder) == 74)
        #expect(!FileManager.default.fileExists(atPath: archive))
    }

    // MARK: - Files that the daemon may change

    /// Makes `gattherd.d` as the package makes it.
    private func makeFragments(in folder: TemporaryFolder) throws {
        let path = folder.file("gattherd.d")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        #expect(unsafe chown(path, 0, Self.daemon) == 0)
        #expect(unsafe chmod(path, 0o770) == 0)
    }

    /// Replaces the backup by one with a file in `gattherd.d`.
    private func backUpFragment(_ name: String) async throws {
        try makeFragments(in: old.folder)
        #expect(unsafe chown(old.folder.file("state"), Self.daemon, Self.daemon) == 0)
        #expect(unsafe chmod(old.folder.path, 0o755) == 0)
        let text = "devices: [{name: strap, address: \"C0:FF:EE:00:00:01\", bind_key_file: gattherd.d/keys/strap}]\n"
        try FileManager.default.createDirectory(
            atPath: old.folder.file("gattherd.d/keys"),
            withIntermediateDirectories: true
        )
        let key = try old.folder.write("000102030405060708090a0b0c0d0e0f\n", to: "gattherd.d/keys/strap")
        #expect(unsafe chmod(key, 0o600) == 0)
        #expect(unsafe chown(key, Self.daemon, Self.daemon) == 0)
        try old.folder.write(text, to: "gattherd.d/" + name)
        try FileManager.default.removeItem(atPath: archive)
        #expect(try await run("backup", in: old.folder) == 0)
    }

    @Test func `the daemon may change restored files of gattherd.d, and not the main file`() async throws {
        try await backUpFragment("strap.yaml")
        try makeState()
        #expect(try await run("restore", in: new) == 0)
        let folder = status("gattherd.d")
        #expect(folder.st_uid == 0 && folder.st_gid == Self.daemon && folder.st_mode & 0o777 == 0o770)
        #expect(status("gattherd.d/strap.yaml").st_uid == Self.daemon)
        #expect(status("gattherd.d/keys/strap").st_mode & 0o777 == 0o640)
        #expect(status("gattherd.yaml").st_uid == 0 && status("gattherd.yaml").st_mode & 0o022 == 0)
    }

    @Test func `files that root wrote into gattherd.d are replaced, and kept under another name`() async throws {
        try await backUpFragment("strap.yaml")
        try makeState()
        try makeFragments(in: new)
        try new.write("# root's\n", to: "gattherd.d/strap.yaml")
        #expect(try await run("restore", in: new) == 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: new.file("gattherd.d"))
        let kept = try #require(names.first { $0.hasPrefix("strap.yaml.replaced-") })
        #expect(try String(contentsOfFile: new.file("gattherd.d/" + kept), encoding: .utf8) == "# root's\n")
    }

    @Test func `a folder that the daemon's user replaced by a link leads root nowhere`() async throws {
        try await backUpFragment("strap.yaml")
        try makeState()
        try makeFragments(in: new)
        try FileManager.default.createDirectory(atPath: new.file("victim"), withIntermediateDirectories: true)
        #expect(unsafe symlink(new.file("victim"), new.file("gattherd.d/keys")) == 0)
        #expect(try await run("restore", in: new) == 73)
        #expect(try FileManager.default.contentsOfDirectory(atPath: new.file("victim")).isEmpty)
    }

    @Test func `a link that the daemon's user put into gattherd.d saves no file of root's`() async throws {
        try await backUpFragment("strap.yaml")
        try FileManager.default.removeItem(atPath: archive)
        let secret = try old.folder.write("log: {level: debug}\n", to: "roots.yaml")
        #expect(unsafe chmod(secret, 0o600) == 0)
        #expect(unsafe symlink(secret, old.folder.file("gattherd.d/link.yaml")) == 0)
        #expect(try await run("backup", in: old.folder) == 74)
        #expect(!FileManager.default.fileExists(atPath: archive))
    }
}
