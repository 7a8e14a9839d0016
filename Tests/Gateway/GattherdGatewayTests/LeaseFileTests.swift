import Foundation
import GattherdLog
import GattherdSync
import TestKit
import Testing

@testable import GattherdGateway

@Suite(.timeLimit(.minutes(1))) struct LeaseFileTests {
    private let folder: TemporaryFolder
    private let lines = Locked<[String]>([])

    init() throws {
        folder = try TemporaryFolder()
    }

    private func file(_ path: String) -> LeaseFile {
        let log = Log(threshold: .debug) { [lines] entry in lines.withLock { $0.append(entry.message) } }
        return LeaseFile(path: path, log: log)
    }

    @Test func `the devices that were owned last are known after a restart`() async throws {
        let path = folder.file("leases")
        file(path).save(["C0:FF:EE:00:00:01", "C0:FF:EE:00:00:02"])
        try await eventually { FileManager.default.fileExists(atPath: path) }
        #expect(file(path).addresses == ["C0:FF:EE:00:00:01", "C0:FF:EE:00:00:02"])
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "C0:FF:EE:00:00:01\nC0:FF:EE:00:00:02\n")
    }

    @Test func `after a failed write the same devices are written again, and it is logged once`() async throws {
        let path = folder.file("missing/leases")
        let file = self.file(path)
        try await eventually {
            file.save(["C0:FF:EE:00:00:01"])
            return !lines.withLock { $0.isEmpty }
        }
        try FileManager.default.createDirectory(atPath: folder.file("missing"), withIntermediateDirectories: true)
        try await eventually {
            file.save(["C0:FF:EE:00:00:01"])
            return FileManager.default.fileExists(atPath: path)
        }
        #expect(lines.withLock { $0 } == ["the list of owned devices cannot be written"])
    }
}
