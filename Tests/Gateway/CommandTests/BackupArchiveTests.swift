import GattherdProcess
import Glibc
import TestKit
import Testing

@testable import gattherd

@Suite struct BackupArchiveTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func run(_ program: String, _ arguments: String...) async throws {
        try #require(try await ChildProcess(program, arguments).wait() == .exited(0))
    }

    /// Extracts an archive with a link, and a folder that has another name in the archive.
    private func extract(deepFolder name: String) async throws -> CommandFailure? {
        let (source, archive) = (folder.file("source"), folder.file("backup.tar"))
        try await run("mkdir", "-p", source + "/configuration", source + "/deep")
        unsafe symlink("/etc/hostname", source + "/configuration/gattherd.yaml")
        let content = ["--directory", source, "configuration", "deep"]
        let arguments = ["--create", "--file", archive, "--transform", "s,^deep,\(name),"] + content
        try #require(try await ChildProcess("tar", arguments).wait() == .exited(0))
        let staging = try StagingFolder("restore")
        let failure = await #expect(throws: CommandFailure.self) {
            try await BackupArchive(archive, command: "restore").extract(to: staging)
        }
        try await run("rm", "-rf", staging.path)
        return failure
    }

    @Test func `an archive with a link is refused`() async throws {
        let failure = try await extract(deepFolder: "deep")
        #expect(failure?.code == .data)
        #expect(failure?.message?.hasSuffix("'configuration/gattherd.yaml' is not a regular file") == true)
    }

    @Test func `a missing folder is named as the cause before anything is archived`() async throws {
        let path = folder.file("missing/backup.tar")
        let staging = try StagingFolder("backup")
        let failure = await #expect(throws: CommandFailure.self) {
            try await BackupArchive(path, command: "backup").create(from: staging)
        }
        try await run("rm", "-rf", staging.path)
        #expect(failure?.code == .cannotCreate)
        #expect(failure?.message == "gattherd backup: \(path): its folder is missing; make it first")
    }

    @Test func `folders too deep to be listed hide no link in an archive`() async throws {
        let component = String(repeating: "a", count: 203)
        let name = Array(repeating: component, count: 20).joined(separator: "/")
        #expect(try await extract(deepFolder: name)?.code == .data)
    }
}
