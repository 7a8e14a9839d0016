import FoundationEssentials
import GattherdSync

/// The name of the board on which the daemon runs.
///
/// A copied memory card has the same `/etc/machine-id` as the first one, and addresses of network interfaces change
/// with adapters and programs. Boards with a device tree, such as the Raspberry Pi, have a serial number.
enum MachineIdentity {
    /// Returns a name of hexadecimal digits.
    ///
    /// - Parameter root: The folder of the system's files.
    /// - Returns: The name; `nil` for a board without a serial number.
    static func read(root: String = "") -> String? {
        let data = FileManager.default.contents(atPath: root + "/proc/device-tree/serial-number") ?? Data()
        let serial = data.prefix { $0 > 0x20 }
        return serial.isEmpty ? nil : String(StableHash.fnv1a(serial), radix: 16)
    }
}
