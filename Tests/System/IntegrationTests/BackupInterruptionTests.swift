import Foundation
import TestKit
import Testing

/// Backups whose process is ended while tar runs.
@Suite(.timeLimit(.minutes(2)))
struct BackupInterruptionTests {
    private let history: HistoryFolder
    private var folder: TemporaryFolder { history.folder }

    init() async throws {
        history = try await HistoryFolder(seconds: 1)
        try folder.write("gateway: attic\n", to: "gattherd.yaml")
        for name in ["bin", "tmp", "backups"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
        }
    }

    /// Runs a backup with a `tar` that sends a signal to its parent instead, if there is one.
    private func backUp(_ signal: String?, _ words: String...) async throws -> Int32 {
        let tar = try folder.write("#!/bin/sh\nkill -\(signal ?? "0") $PPID\nexec sleep 60\n", to: "bin/tar")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: tar)
        let path = (signal == nil ? "" : folder.file("bin") + ":") + "/usr/bin:/bin"
        let environment = ["PATH=\(path)", "TMPDIR=\(folder.file("tmp"))", Programs.path("gattherd"), "backup"]
        let configuration = ["--config", folder.file("gattherd.yaml")]
        return try await Programs.run("/usr/bin/env", environment + words + configuration).0
    }

    private func names(_ name: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.file(name))
    }

    @Test(arguments: ["INT", "TERM"]) func `a signal leaves no archive and no copies`(signal: String) async throws {
        let code = try await backUp(signal, folder.file("backups/a.tar"))
        #expect(code == (signal == "INT" ? 130 : 143))
        #expect(try names("backups").isEmpty)
        #expect(try names("tmp").isEmpty)
    }

    @Test func `a killed backup leaves no archive, and the next backup removes its remains`() async throws {
        #expect(try await backUp("KILL", folder.file("backups"), "--keep", "2") == -1)
        #expect(try names("backups").allSatisfy { $0.hasSuffix(".part") })
        let staging = try #require(try names("tmp").first)
        let longAgo = Date(timeIntervalSinceNow: -3600)
        try FileManager.default.setAttributes([.modificationDate: longAgo], ofItemAtPath: folder.file("tmp/\(staging)"))
        try await eventually { try await backUp(nil, folder.file("backups"), "--keep", "2") == 0 && !hasDrafts() }
        #expect(try names("tmp").isEmpty)
        #expect(try names("backups").allSatisfy { $0.hasSuffix(".tar") })
    }

    /// The killed program's tar has the draft open until the kernel has ended it.
    private func hasDrafts() throws -> Bool { try names("backups").contains { $0.hasSuffix(".part") } }
}
