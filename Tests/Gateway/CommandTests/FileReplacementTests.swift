import Foundation
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdGateway
@testable import gattherd

@Suite struct FileReplacementTests {
    private let folder: TemporaryFolder
    private var replacement = FileReplacement(Timestamp(microseconds: 0))

    init() throws {
        folder = try TemporaryFolder()
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }
    }

    @Test mutating func `nothing is replaced before all new files are written`() throws {
        let target = try folder.write("old", to: "a")
        try replacement.add(target, Array("new".utf8), owner: .current, mode: 0o640)
        #expect(throws: FileError.self) {
            try replacement.add("/proc/none/b", [], owner: .current, mode: 0o640)
        }
        #expect(try String(contentsOfFile: target, encoding: .utf8) == "old")
        replacement = FileReplacement(Timestamp(microseconds: 0))
        #expect(try names == ["a"])
    }

    @Test mutating func `the replaced file is the old one under a second name`() throws {
        let target = try folder.write("old", to: "a")
        var (before, after) = (stat(), stat())
        #expect(unsafe stat(target, &before) == 0)
        try replacement.add(target, Array("new".utf8), owner: .current, mode: 0o640)
        try replacement.finish()
        #expect(try names == ["a", "a.replaced-19700101T000000Z"])
        #expect(unsafe stat(folder.file("a.replaced-19700101T000000Z"), &after) == 0)
        #expect(before.st_ino == after.st_ino)
        #expect(try String(contentsOfFile: target, encoding: .utf8) == "new")
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `root saves bonds also if the daemon owns the folder of the configuration`() throws {
        let bonds = try TemporaryFolder()
        let bond = BackupPlan.File(path: try bonds.write("key", to: "info"), name: "bonds/adapter/device/info")
        let file = ConfigurationFile(try folder.write("", to: "gattherd.yaml"))
        #expect(unsafe chown(folder.path, 65_534, 65_534) == 0)
        let access = FolderAccess(file, FileAccount(user: 65_534, group: 65_534))
        #expect(try BackupCommand.content(of: bond, access).0 == Array("key".utf8))
    }

    @Test func `restored files are for the account of the service that uses the configuration`() {
        let file = ConfigurationFile("/etc/gattherd/gattherd.yaml")
        let text = "[Service]\nUser=nobody\nExecStart=/usr/bin/gattherd run --config /etc/gattherd/gattherd.yaml\n"
        let nobody = FileAccount.daemon(of: file, stateFolder: "/nowhere", unit: ServiceUnit([text]))
        #expect(nobody.user == 65_534)
        let unit = ServiceUnit([text, "[Service]\nSupplementaryGroups=root\n"])
        let more = FileAccount.daemon(of: file, stateFolder: "/", unit: unit)
        #expect(more.otherGroups.contains(0) && !nobody.otherGroups.contains(0))
        let other = ConfigurationFile(folder.file("gattherd.yaml"))
        #expect(FileAccount.daemon(of: other, stateFolder: "/nowhere", unit: ServiceUnit([text])) == .current)
        #expect(FileAccount.daemon(of: other, stateFolder: "/", unit: nil).user == 0)
    }
}
