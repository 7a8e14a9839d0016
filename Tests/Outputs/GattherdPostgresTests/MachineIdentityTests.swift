import FoundationEssentials
import TestKit
import Testing

@testable import GattherdPostgres

@Suite struct MachineIdentityTests {
    /// Returns a root with the serial number of a board.
    private func root(_ serial: String) throws -> TemporaryFolder {
        let root = try TemporaryFolder()
        let folder = URL(filePath: root.file("proc/device-tree"))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try root.write(serial, to: "proc/device-tree/serial-number")
        return root
    }

    @Test func `a board is named by its serial number`() throws {
        let (one, same) = (try root("10000000c0ffee\0"), try root("10000000c0ffee\n"))
        let other = try root("10000000c0ffef\0")
        let name = try #require(MachineIdentity.read(root: one.path))
        #expect(MachineIdentity.read(root: same.path) == name)
        #expect(MachineIdentity.read(root: other.path) != name)
        #expect(!name.contains("-"), "a run divides its parts by it")
    }

    @Test func `a board without a serial number has no name`() throws {
        #expect(MachineIdentity.read(root: try TemporaryFolder().path) == nil)
        #expect(MachineIdentity.read(root: try root("\0").path) == nil)
    }
}
