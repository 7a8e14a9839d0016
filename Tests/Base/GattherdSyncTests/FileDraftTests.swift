import Foundation
import GattherdSync
import TestKit
import Testing

@Suite struct FileDraftTests {
    private let folder: TemporaryFolder
    private let target: String

    init() throws {
        folder = try TemporaryFolder()
        target = folder.file("target")
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }
    }

    private var text: String {
        get throws { try String(contentsOfFile: target, encoding: .utf8) }
    }

    @Test func `the target has its old content until it is replaced`() throws {
        try folder.write("old", to: "target")
        let draft = try FileDraft(of: target)
        try draft.write(Array("new".utf8))
        #expect(try text == "old")
        try draft.replace()
        #expect(try text == "new")
        #expect(try names == ["target"])
    }

    @Test func `only the owner can read a draft`() throws {
        let mask = umask(0)
        defer { umask(mask) }
        let draft = try FileDraft(of: target)
        var status = stat()
        #expect(unsafe lstat(target + ".part", &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        try draft.setMode(0o644)
        try draft.replace()
        #expect(unsafe lstat(target, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o644)
    }

    @Test func `a draft that is not placed is removed`() throws {
        do { _ = try FileDraft(of: target) }
        #expect(try names.isEmpty)
    }

    @Test func `a new file never replaces an existing one`() throws {
        try folder.write("old", to: "target")
        let draft = try FileDraft(of: target)
        #expect(throws: FileError(EEXIST, target)) { try draft.create() }
        #expect(try text == "old")
    }

    @Test func `a symbolic link at the path of the draft is not followed`() throws {
        let victim = try folder.write("mine", to: "victim")
        try FileManager.default.createSymbolicLink(atPath: target + ".part", withDestinationPath: victim)
        let draft = try FileDraft(of: target)
        try draft.write(Array("new".utf8))
        try draft.create()
        #expect(try String(contentsOfFile: victim, encoding: .utf8) == "mine")
        #expect(try text == "new")
    }

    @Test func `a draft that another process replaced is not placed`() throws {
        let (first, second) = (try FileDraft(of: target), try FileDraft(of: target))
        #expect(throws: FileError.self) { try first.replace() }
        try second.write(Array("second".utf8))
        try second.replace()
        #expect(try text == "second")
    }
}
