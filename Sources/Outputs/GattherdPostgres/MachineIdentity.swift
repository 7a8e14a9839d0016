import FoundationEssentials
import GattherdSync

/// The name of the machine on which the daemon runs.
///
/// A copied memory card has the same `/etc/machine-id`. So the hardware is part of the name: the serial number of a
/// board, and the permanent addresses of network interfaces.
enum MachineIdentity {
    /// Returns a name of hexadecimal digits.
    ///
    /// - Parameter root: The folder of the system's files.
    /// - Returns: The name; `nil` if the system has nothing to make it of.
    static func read(root: String = "") -> String? {
        let id = text(root + "/etc/machine-id")
        let serial = text(root + "/proc/device-tree/serial-number")
        let parts = [id, serial].compactMap(\.self) + addresses(in: root + "/sys/class/net")
        return parts.isEmpty ? nil : String(StableHash.fnv1a(parts.joined(separator: " ").utf8), radix: 16)
    }

    /// The addresses of interfaces with a device, unless a program has set them: random ones change with each start.
    private static func addresses(in folder: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.map { "\(folder)/\($0)" }.compactMap { interface in
            let isPermanent = text("\(interface)/addr_assign_type") == "0"
            guard isPermanent, FileManager.default.fileExists(atPath: "\(interface)/device") else { return nil }
            return text("\(interface)/address")
        }.sorted()
    }

    private static func text(_ path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        let text = String(decoding: data.prefix { $0 > 0x20 }, as: UTF8.self)
        return text.isEmpty ? nil : text
    }
}
