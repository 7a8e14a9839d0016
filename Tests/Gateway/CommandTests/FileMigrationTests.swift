import Foundation
import GattherdConfig
import GattherdModel
import TestKit
import Testing

@testable import GattherdGateway
@testable import gattherd

/// Files that `gattherd migrate` replaces, with a table of invented renames.
@Suite struct FileMigrationTests {
    private static let renames = [ConfigRename(["log"], "detail", to: "level", since: "0.2")]

    private let folder: TemporaryFolder
    private let file: ConfigurationFile

    init() throws {
        folder = try TemporaryFolder()
        file = ConfigurationFile(try folder.write("gateway: lab # mine\n", to: "gattherd.yaml"))
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: false)
        try folder.write("log:\n  detail: debug # for now\n", to: "gattherd.d/log.yaml")
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o640],
            ofItemAtPath: folder.file("gattherd.d/log.yaml")
        )
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: folder.file(name), encoding: .utf8)
    }

    @Test func `the difference names the file and the line, and nothing is written`() throws {
        let migration = try FileMigration(file, Self.renames)
        let path = folder.file("gattherd.d/log.yaml")
        #expect(
            migration.difference == [
                "--- \(path)", "+++ \(path)", "@@ -1,2 +1,2 @@", " log:", "-  detail: debug # for now",
                "+  level: debug # for now",
            ]
        )
        #expect(try text("gattherd.d/log.yaml").contains("detail"))
    }

    @Test func `a replaced file keeps its permissions, and the old one stays beside it`() throws {
        let replaced = try FileMigration(file, Self.renames).write(at: Timestamp(microseconds: 0))
        #expect(replaced == [folder.file("gattherd.d/log.yaml")])
        #expect(try text("gattherd.d/log.yaml") == "log:\n  level: debug # for now\n")
        let kept = "gattherd.d/log.yaml.replaced-19700101T000000Z"
        #expect(try text(kept) == "log:\n  detail: debug # for now\n")
        let mode = try FileManager.default.attributesOfItem(atPath: replaced[0])[.posixPermissions] as? Int
        #expect(mode == 0o640)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names == ["gattherd.d", "gattherd.yaml"])
        #expect(try FileMigration(file, Self.renames).isEmpty)
        #expect(try file.parsed().log.level == .debug)
    }

    @Test func `a migration of files without old names changes nothing`() throws {
        try folder.write("log: {level: debug}\n", to: "gattherd.d/log.yaml")
        let migration = try FileMigration(file, Self.renames)
        #expect(migration.isEmpty && migration.difference.isEmpty)
        #expect(try migration.write(at: Timestamp(microseconds: 0)).isEmpty)
    }

    @Test func `a symbolic link is not replaced by a file`() throws {
        let target = try folder.write("log: {detail: debug}\n", to: "elsewhere.yaml")
        try FileManager.default.removeItem(atPath: folder.file("gattherd.d/log.yaml"))
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("gattherd.d/log.yaml"),
            withDestinationPath: target
        )
        #expect(throws: CommandFailure.self) {
            try FileMigration(file, Self.renames).write(at: Timestamp(microseconds: 0))
        }
        #expect(try text("elsewhere.yaml") == "log: {detail: debug}\n")
    }

    @Test func `a file whose meaning would change is refused`() throws {
        let renames = [ConfigRename(["log"], "detail", to: "level #", since: "0.2")]
        let failure = #expect(throws: CommandFailure.self) { _ = try FileMigration(file, renames) }
        #expect(failure?.code == .software)
    }
}
