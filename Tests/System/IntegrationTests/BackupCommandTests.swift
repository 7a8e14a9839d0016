import Foundation
import GattherdHistory
import TestKit
import Testing

@Suite(.timeLimit(.minutes(2)))
struct BackupCommandTests {
    private static let configuration = """
        gateway: attic
        mqtt: {url: "mqtt://localhost", username: me, password_file: secret}
        http: {listen: "127.0.0.1:8780", token_file: /nowhere/token}
        profiles: {paths: [profiles]}
        """

    /// Runs `gattherd` with a configuration and returns its exit code, standard output and standard error.
    private func gattherd(
        _ words: String...,
        in folder: TemporaryFolder
    ) async throws -> (code: Int32, output: String, complaints: String) {
        let errors = folder.file("errors")
        let arguments = words + ["--config", folder.file("gattherd.yaml")]
        let (code, output) = try await Programs.run(Programs.path("gattherd"), arguments, errors: errors)
        return (code, output, try String(contentsOfFile: errors, encoding: .utf8))
    }

    private func write(_ text: String, to path: String, mode: Int = 0o644) throws {
        let folder = URL(filePath: path).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    /// Writes a backup of a whole gateway.
    private func backUp(_ old: HistoryFolder) async throws -> String {
        try write(Self.configuration, to: old.folder.file("gattherd.yaml"))
        try write("log: {level: debug}\n", to: old.folder.file("gattherd.d/log.yaml"))
        try write("hush\n", to: old.folder.file("secret"), mode: 0o640)
        try write("# a profile\n", to: old.folder.file("profiles/mine.yaml"))
        try write("mqtt://localhost:1883 gattherd/attic\n", to: old.folder.file("mqtt-base-topics"))
        let archive = old.folder.file("backup.tar")
        let result = try await gattherd("backup", archive, in: old.folder)
        #expect(result.code == 0, "\(result)")
        #expect(result.complaints.contains("not in the backup, because it is elsewhere: /nowhere/token"))
        return archive
    }

    @Test func `a backup restores configuration, profiles, secrets, identity and history elsewhere`() async throws {
        let old = try await HistoryFolder(seconds: 60)
        let archive = try await backUp(old)
        let mode = try FileManager.default.attributesOfItem(atPath: archive)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let new = try TemporaryFolder()
        try write("gateway: other\n", to: new.file("gattherd.yaml"))
        let result = try await gattherd("restore", archive, in: new)
        #expect(result.code == 0, "\(result)")
        #expect(result.complaints.contains("copy it yourself: /nowhere/token"))
        #expect(try text(new.file("gattherd.yaml")) == Self.configuration)
        #expect(try text(new.file("gattherd.d/log.yaml")) == "log: {level: debug}\n")
        #expect(try text(new.file("secret")) == "hush\n")
        let secret = try FileManager.default.attributesOfItem(atPath: new.file("secret"))
        #expect(secret[.posixPermissions] as? Int == 0o640)
        #expect(try text(new.file("profiles/mine.yaml")) == "# a profile\n")
        #expect(try text(new.file("mqtt-base-topics")) == "mqtt://localhost:1883 gattherd/attic\n")
        #expect(try HistoryReader(path: new.file("gattherd.db")).contents().samples == 62)
        let names = try FileManager.default.contentsOfDirectory(atPath: new.path)
        let replaced = try #require(names.first { $0.hasPrefix("gattherd.yaml.replaced-") })
        #expect(try text(new.file(replaced)) == "gateway: other\n")
        #expect(!names.contains { $0.hasSuffix(".restore") })
    }

    @Test func `a backup does not replace a file`() async throws {
        let old = try await HistoryFolder(seconds: 1)
        let archive = try await backUp(old)
        let again = try await gattherd("backup", archive, in: old.folder)
        #expect(again.code == 73)
        #expect(again.complaints.contains("backup.tar: the file exists already; choose another name, or remove it"))
        let whole = try await gattherd("backup", old.folder.path, in: old.folder)
        #expect(whole.code == 73)
        #expect(whole.complaints.contains("is a folder; name a file in it, or add --keep COUNT"))
    }

    @Test func `of the backups in a folder the newest are kept, and other files stay`() async throws {
        let old = try await HistoryFolder(seconds: 1)
        _ = try await backUp(old)
        let folder = old.folder.file("backups")
        let first = "gattherd-attic-000001-20990101T000000Z.tar"
        let second = "gattherd-attic-000002-20210101T000000Z.tar"
        for name in [first, second, "other.tar"] { try write("", to: "\(folder)/\(name)") }
        let result = try await gattherd("backup", folder, "--keep", "2", in: old.folder)
        #expect(result.code == 0, "\(result)")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(names.count == 3)
        #expect(names.contains("other.tar") && names.contains(second))
        #expect(names.contains { $0.hasPrefix("gattherd-attic-000003-") })
    }

    @Test func `a file that is not a backup is refused, and so are links in one`() async throws {
        let new = try TemporaryFolder()
        try write("no archive", to: new.file("text.tar"))
        #expect(try await gattherd("restore", new.file("text.tar"), in: new).code == 65)
        #expect(try await gattherd("restore", new.path, in: new).code == 66)
        #expect(try await gattherd("restore", new.file("missing.tar"), in: new).code == 66)
        let staged = new.file("staged")
        let manifest = #"{"format":1,"gateway":"a","created":"x","main":"configuration/a","elsewhere":[]}"#
        try write(manifest, to: "\(staged)/manifest.json")
        try FileManager.default.createDirectory(atPath: "\(staged)/configuration", withIntermediateDirectories: true)
        let link = "\(staged)/configuration/a"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/etc/hostname")
        let archive = new.file("link.tar")
        _ = try await Programs.run("/bin/tar", ["--create", "--file", archive, "--directory", staged, "."])
        let result = try await gattherd("restore", archive, in: new)
        #expect(result.code == 65)
        #expect(result.complaints.contains("not a gattherd backup: 'configuration/a' is not a regular file"))
        #expect(!FileManager.default.fileExists(atPath: new.file("gattherd.yaml")))
    }

    @Test func `a truncated backup is refused as damaged, and changes nothing`() async throws {
        let old = try await HistoryFolder(seconds: 60)
        let archive = try await backUp(old)
        let whole = try Data(contentsOf: URL(filePath: archive))
        try whole.prefix(whole.count / 2).write(to: URL(filePath: archive))
        let new = try TemporaryFolder()
        #expect(try await gattherd("restore", archive, in: new).code == 65)
        #expect(try FileManager.default.contentsOfDirectory(atPath: new.path) == ["errors"])
    }

    @Test func `a backup that was cut between two files is refused as damaged, and changes nothing`() async throws {
        let old = try await HistoryFolder(seconds: 60)
        let archive = try await backUp(old)
        for name in ["manifest.json", "history.db", "configuration/secret", "state/mqtt-base-topics"] {
            let cut = old.folder.file("cut.tar")
            try Data(contentsOf: URL(filePath: archive)).write(to: URL(filePath: cut))
            _ = try await Programs.run("/bin/tar", ["--delete", "--file", cut, "./\(name)"])
            let new = try TemporaryFolder()
            let result = try await gattherd("restore", cut, in: new)
            #expect(result.code == 65)
            #expect(result.complaints.contains("damaged: it has no '\(name)'"), "\(result)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: new.path) == ["errors"])
        }
    }

    @Test func `a backup with a damaged history is refused by its own name`() async throws {
        let old = try await HistoryFolder(seconds: 60)
        let archive = try await backUp(old)
        let new = try TemporaryFolder()
        let (staged, damaged) = (new.file("staged"), new.file("damaged.tar"))
        try FileManager.default.createDirectory(atPath: staged, withIntermediateDirectories: true)
        _ = try await Programs.run("/bin/tar", ["--extract", "--file", archive, "--directory", staged])
        try write("no history", to: "\(staged)/history.db")
        _ = try await Programs.run("/bin/tar", ["--create", "--file", damaged, "--directory", staged, "."])
        let result = try await gattherd("restore", damaged, in: new)
        #expect(result.code == 65)
        #expect(result.complaints.contains("history.db in \(damaged): "), "\(result)")
        #expect(result.complaints.contains("name a file that 'gattherd backup' has written"), "\(result)")
    }

    @Test func `a backup with a relative --config contains all files`() async throws {
        let old = try await HistoryFolder(seconds: 1)
        _ = try await backUp(old)
        let words = ["--chdir", old.folder.path, Programs.path("gattherd"), "backup", "again.tar"]
        let (code, output) = try await Programs.run("/usr/bin/env", words + ["--config", "gattherd.yaml"])
        #expect(code == 0)
        #expect(output == "again.tar: the history and 5 files\n")
        let (_, names) = try await Programs.run("/bin/tar", ["--list", "--file", old.folder.file("again.tar")])
        for name in ["gattherd.yaml", "gattherd.d/log.yaml", "secret", "profiles/mine.yaml"] {
            #expect(names.contains("./configuration/\(name)\n"))
        }
    }

    @Test func `without a history there is no backup unless --no-history asks for one`() async throws {
        let old = try TemporaryFolder()
        try write("gateway: attic\n", to: old.file("gattherd.yaml"))
        let missing = try await gattherd("backup", old.file("a.tar"), in: old)
        #expect(missing.code == 69)
        #expect(missing.complaints.contains("there is no history at \(old.file("gattherd.db"))"))
        #expect(!FileManager.default.fileExists(atPath: old.file("a.tar")))
        let bare = try await gattherd("backup", old.file("a.tar"), "--no-history", in: old)
        #expect(bare.code == 0 && bare.output == "\(old.file("a.tar")): 1 file\n", "\(bare)")
        let lock = try HistoryLock(database: old.file("gattherd.db"))
        #expect(try await gattherd("restore", old.file("a.tar"), in: old).code == 69)
        withExtendedLifetime(lock) {}
    }

    @Test func `a daemon with another history keeps its configuration until it is stopped`() async throws {
        let old = try await HistoryFolder(seconds: 1)
        let archive = try await backUp(old)
        let (new, present) = (try TemporaryFolder(), "gateway: other\nhistory: {path: other.db}\n")
        try write(present, to: new.file("gattherd.yaml"))
        let lock = try HistoryLock(database: new.file("other.db"))
        let refused = try await gattherd("restore", archive, in: new)
        #expect(refused.code == 69)
        #expect(refused.complaints.contains("uses \(new.file("other.db")); stop it first"), "\(refused)")
        withExtendedLifetime(lock) {}
        #expect(try text(new.file("gattherd.yaml")) == present)
        #expect(!FileManager.default.fileExists(atPath: new.file("gattherd.db")))
    }

    @Test func `a stopped daemon's history does not matter to a restore, nor does another name of its folder`()
        async throws
    {
        let old = try await HistoryFolder(seconds: 1)
        let archive = try await backUp(old)
        let new = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(atPath: new.file("alias"), withDestinationPath: new.path)
        for path in ["other.db", "alias/gattherd.db"] {
            try write("history: {path: \(path)}\n", to: new.file("gattherd.yaml"))
            try new.write("", to: path + "-lock")
            #expect(try await gattherd("restore", archive, in: new).code == 0, "\(path)")
        }
    }

    @Test(arguments: ["2>/dev/full", "2>&-", "2>&- >&- <&-"])
    func `a failure has its exit code, also if standard error cannot be written`(redirection: String) async throws {
        let folder = try TemporaryFolder()
        try write("gateway: attic\n", to: folder.file("gattherd.yaml"))
        let script = "\"$0\" backup a.tar --config \"$1\" \(redirection)"
        let words = ["-c", script, Programs.path("gattherd"), folder.file("gattherd.yaml")]
        #expect(try await Programs.run("/bin/sh", words).0 == 69)
    }
}
