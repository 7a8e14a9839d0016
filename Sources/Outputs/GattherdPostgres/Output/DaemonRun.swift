import FoundationEssentials
import GattherdOutputs
import GattherdSync

/// The run of a daemon, by which the centre notices two gateways with one name.
package struct DaemonRun: Sendable {
    /// The run of this process.
    package static let current = DaemonRun(machine: MachineIdentity.read() ?? "")

    private let id: String

    /// - Parameter machine: The name of the machine, without `-`; empty if it is not known.
    package init(machine: String = "") {
        var random = SystemRandomNumberGenerator()
        id = "\(machine)-" + String(random.next(), radix: 16) + String(random.next(), radix: 16)
    }

    /// Reports to the centre that this daemon is alive.
    ///
    /// - Returns: The reason why it must not deliver, with the remedy: another daemon does so as the same gateway.
    func attend(
        _ client: PostgresClient,
        within limit: Duration
    ) async throws(PostgresError) -> String? {
        try await client.perform(within: limit) { (connection, call) throws(PostgresError) in
            try attend(connection, call)
        }
    }

    /// Reports like ``attend(_:within:)`` within a call.
    func attend(
        _ connection: PostgresConnection,
        _ call: PostgresClient.Call
    ) throws(PostgresError) -> String? {
        let answer = try connection.run("SELECT gattherd.attend($1)", [.text(id)]) { call.mayContinue }
        guard let conflict = answer.first?.first ?? nil else { return nil }
        return "\(conflict.onOneLine); give one of them another name, and run at the centre: gattherd fleet add"
    }
}

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
