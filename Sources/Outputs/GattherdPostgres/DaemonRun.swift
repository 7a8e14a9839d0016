import GattherdOutputs

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
        let answer = try await client.run("SELECT gattherd.attend($1)", [.text(id)], within: limit)
        guard let conflict = answer.first?.first ?? nil else { return nil }
        return "\(conflict); give one of them another name, and run at the centre: gattherd fleet add"
    }
}
