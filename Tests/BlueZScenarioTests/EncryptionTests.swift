import BlueZKit
import TestKit
import Testing

/// A device whose values need an encrypted link, without a passkey ("Just Works").
@Suite(.timeLimit(.minutes(4)), .serialized) struct EncryptionTests {
    /// A number that only a paired central may read and write.
    private static let safe = Neighbourhood.Entry(
        "custom",
        "safe",
        "services: [{uuid: 7a4bbfe6-999f-4717-b63a-066e06971f59, characteristics: [{"
            + "uuid: 7a4b0001-999f-4717-b63a-066e06971f59, properties: [read, write, notify], "
            + "value: '2A', encrypted: true, rate: 5, notify: [\(counting.joined(separator: ", "))]}]}]"
    )

    /// So many different values that each can be told from those before and after it.
    private static let counting = (0x10...0xFF).map { "'\(String($0, radix: 16))'" }

    @Test func `It is paired once, read and watched, and the bond outlives links and bluetoothd`() async throws {
        let gateway = try await Gateway(Neighbourhood(Self.safe, .init("heart-rate", "strap", "rate: 5")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.readCount("safe") == 1 }
        try await gateway.waitForReadings(5)
        try await gateway.order("drop", "safe")
        try await eventually { try await gateway.readyCount("safe") == 2 }
        try await gateway.order("restart-daemon", "500ms", "graceful")
        try await eventually { try await gateway.readyCount("safe") == 3 }
        try await gateway.waitForReadings(5)
        #expect(try await gateway.isBonded("safe"))
        #expect(try await !gateway.isBonded("strap"))
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }
}

extension Gateway {
    /// How many readings came by a read.
    func readCount(_ device: String) async throws -> Int {
        let sql = "SELECT count(DISTINCT seq) FROM history WHERE device = '\(device)' AND source = 'read'"
        return Int(try await database.value(sql)) ?? 0
    }

    /// What `gattherd bond list` says in its fourth column.
    func isBonded(_ device: String) async throws -> Bool {
        let (_, bonds) = try await command("bond", "list")
        let rows = bonds.split(separator: "\n").map { $0.split(separator: " ") }
        return rows.first { $0.contains(Substring(device)) }?[3] == "yes"
    }
}
