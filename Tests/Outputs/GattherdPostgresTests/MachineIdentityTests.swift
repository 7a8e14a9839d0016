import FoundationEssentials
import TestKit
import Testing

@testable import GattherdPostgres

@Suite struct MachineIdentityTests {
    @Test func `a machine is named by its id, its board and its own network addresses`() throws {
        let root = try TemporaryFolder()
        #expect(MachineIdentity.read(root: root.path) == nil)
        var names: [String?] = []
        for (path, text) in [
            ("etc/machine-id", "0123456789abcdef\n"), ("proc/device-tree/serial-number", "10000000c0ffee\0"),
            ("sys/class/net/eth0/device", ""), ("sys/class/net/eth0/addr_assign_type", "0\n"),
            ("sys/class/net/eth0/address", "b8:27:eb:00:00:01\n"), ("sys/class/net/veth1/addr_assign_type", "0\n"),
            ("sys/class/net/veth1/address", "02:42:00:00:00:01\n"), ("sys/class/net/wlan0/device", ""),
            ("sys/class/net/wlan0/addr_assign_type", "3\n"), ("sys/class/net/wlan0/address", "02:00:00:00:00:01\n"),
        ] {
            let folder = URL(filePath: root.file(path)).deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try root.write(text, to: path)
            names.append(MachineIdentity.read(root: root.path))
        }
        #expect(Set(names).count == 3 && names[4] == names.last)
        #expect(names.allSatisfy { $0?.contains("-") == false })
    }
}
