import Foundation
import GattherdModel
import TestKit
import Testing

@testable import gattherd

@Suite struct BackupRotationTests {
    private let folder: TemporaryFolder
    private let rotation: BackupRotation

    init() throws {
        folder = try TemporaryFolder()
        rotation = BackupRotation(folder: folder.path, gateway: "attic", count: 2)
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }
    }

    /// Makes a backup at this time of the clock; returns its name.
    private func backUp(_ time: String) throws -> String {
        let path = rotation.path(at: try #require(Timestamp(rfc3339: time.utf8)))
        try Data().write(to: URL(filePath: path))
        rotation.removeOld(after: path)
        return URL(filePath: path).lastPathComponent
    }

    @Test func `the newest backups stay, also with a wrong clock`() throws {
        let wrong = try ["2099-01-01T00:00:00Z", "2099-01-02T00:00:00Z", "2099-01-03T00:00:00Z"].map { try backUp($0) }
        #expect(try names == Array(wrong.dropFirst()))
        let right = try ["2026-11-21T03:20:05Z", "1970-01-01T00:00:09Z"].map { try backUp($0) }
        #expect(try names == right.sorted())
    }

    @Test func `the new backup stays even if its number is not the highest`() throws {
        let backups = ["01", "08", "09"].map { "gattherd-attic-0000\($0)-20261121T032005Z.tar" }
        for name in backups { try folder.write("", to: name) }
        rotation.removeOld(after: folder.file(backups[0]))
        #expect(try names == [backups[0], backups[2]])
    }

    @Test func `drafts of killed processes are removed, those of running ones stay`() throws {
        let (dead, busy) = ("gattherd-attic-000001-20261121T032005Z.tar.part", "gattherd-attic-000002-x.tar.part")
        try folder.write("", to: dead)
        let descriptor = unsafe open(try folder.write("", to: busy), O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(flock(descriptor, LOCK_EX) == 0)
        let new = try backUp("2026-11-21T03:20:05Z")
        #expect(try names == [busy, new].sorted())
    }
}
