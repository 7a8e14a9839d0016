import BlueZKit
import Foundation
import GattherdProcess
import Glibc
import TestKit
import Testing

/// Devices that require encryption: pairing by configuration, and recovery from lost bonds.
@Suite(.timeLimit(.minutes(12)), .serialized) struct PairingTests {
    /// A heart rate strap whose characteristics all require encryption.
    private static func lock(_ pairing: String = "just-works", device: String = "") -> TestPeripherals {
        let payloads = (60...119).map { "'00 \(String($0, radix: 16))'" }.joined(separator: ", ")
        let services = """
            services: [{uuid: 180d, characteristics: [
              {uuid: 2a37, properties: [notify], encrypted: true, notify: [\(payloads)]},
              {uuid: 2a38, value: "01", encrypted: true}]}]
            """
        let scenario = "rate: 10, pairing: \(pairing), " + services
        return TestPeripherals(.init("custom", "lock", scenario, device: device))
    }

    private static func address(_ gateway: Gateway) -> String {
        gateway.peripherals.devices[0].address
    }

    @Test func `a device that needs encryption pairs automatically and delivers after drops and restarts`()
        async throws
    {
        let gateway = try await Gateway(Self.lock())
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        #expect(try await gateway.bonds() == [.init(device: "lock", isBonded: true)])
        for fault in [["drop", "lock"], ["restart-daemon", "100ms", "graceful"], ["restart-daemon", "500ms"]] {
            let ready = try await gateway.readyCount("lock")
            try await gateway.stack.order(fault)
            try await eventually { try await gateway.readyCount("lock") > ready }
            try await gateway.waitForReadings(20)
        }
        // The bond survives drops and restarts: the device has paired once.
        let events = try await gateway.bondEvents("lock")
        #expect(events == ["made"])
        // After a crash the kernel keeps the links for two seconds and nobody receives their notifications.
        try await gateway.expectAgreement(subscriber, tail: 3_000_000)
        try await gateway.end(daemon)
    }

    @Test func `a device that lost its bond fails until a person removes the bond`() async throws {
        let gateway = try await Gateway(Self.lock())
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.order("forget", "lock")
        try await gateway.order("drop", "lock")
        try await gateway.waitUntilFailed("lock")
        #expect(try await gateway.failure(of: "lock").contains("gattherd bond forget lock"))
        #expect(try await gateway.bonds() == [.init(device: "lock", isBonded: true)])
        #expect(try await gateway.command("bond", "forget", "lock").0 == 0)
        try await eventually { try await gateway.readyCount("lock") == 2 }
        try await gateway.waitForReadings(10)
        let events = try await gateway.bondEvents("lock")
        #expect(events == ["made", "lost", "forgotten", "made"])
        try await gateway.end(daemon)
    }

    @Test func `a device that lost its bond pairs again automatically with on_bond_loss: repair`() async throws {
        let gateway = try await Gateway(Self.lock(device: "on_bond_loss: repair"))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.order("forget", "lock")
        try await gateway.order("drop", "lock")
        try await eventually { try await gateway.readyCount("lock") == 2 }
        try await gateway.waitForReadings(10)
        let events = try await gateway.bondEvents("lock")
        #expect(events == ["made", "lost", "forgotten", "made"])
        try await gateway.end(daemon)
    }

    @Test func `a device whose bond was removed on the gateway pairs again`() async throws {
        let gateway = try await Gateway(Self.lock())
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        #expect(try await gateway.command("bond", "forget", Self.address(gateway)).0 == 0)
        try await eventually { try await gateway.readyCount("lock") == 2 }
        try await gateway.end(daemon)
    }

    @Test func `a device that refuses to pair fails with that reason`() async throws {
        let gateway = try await Gateway(Self.lock("refused"))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilFailed("lock")
        #expect(try await gateway.failure(of: "lock").contains("authentication"))
        try await gateway.end(daemon)
    }

    @Test func `a device that is configured never to pair fails with that reason`() async throws {
        let gateway = try await Gateway(Self.lock(device: "pairing: never"))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilFailed("lock")
        #expect(try await gateway.failure(of: "lock").contains("pairing: never"))
        #expect(try await gateway.bonds() == [.init(device: "lock", isBonded: false)])
        try await gateway.end(daemon)
    }

    @Test func `bonds can be listed and removed while the daemon is stopped`() async throws {
        let gateway = try await Gateway(Self.lock(device: "pairing: just_works"))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        #expect(try await gateway.bonds() == [.init(device: "lock", isBonded: true)])
        #expect(try await gateway.command("bond", "forget", "lock").0 == 0)
        #expect(try await gateway.command("bond", "forget", "lock").0 == 65)
        #expect(try await gateway.bonds().contains { $0.isBonded } == false)
        let again = try gateway.startDaemon()
        try await eventually { try await gateway.readyCount("lock") == 2 }
        try await gateway.end(again)
    }

    /// Simulator only: the peripherals of the real stack have neither display nor keyboard.
    @Test(.enabled(if: StackKind.current == .simulated), arguments: ["shows-passkey", "compares"])
    func `a device pairs with the passkey in pin_file and with no other`(pairing: String) async throws {
        let folder = try TemporaryFolder()
        let pin = try folder.write("123455\n", to: "pin")
        let gateway = try await Gateway(Self.lock(pairing, device: "pin_file: \(pin)"))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilFailed("lock")
        #expect(try await gateway.failure(of: "lock").contains("is its passkey right?"))
        try folder.write("123456\n", to: "pin")
        #expect(try await gateway.command("connect", "lock").0 == 0)
        try await gateway.waitUntilReady()
        #expect(!gateway.log.contains("12345"))
        try await gateway.end(daemon)
    }

    @Test(.enabled(if: StackKind.current == .simulated))
    func `numeric comparison is confirmed with pairing: compare`() async throws {
        let gateway = try await Gateway(Self.lock("compares", device: "pairing: compare"))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.end(daemon)
    }

    @Test func `a device with a passkey that pairs without asking for it is not bonded`() async throws {
        let folder = try TemporaryFolder()
        let pin = try folder.write("123456", to: "pin")
        let gateway = try await Gateway(Self.lock(device: "pin_file: \(pin)"))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilFailed("lock")
        #expect(try await gateway.bonds().contains { $0.isBonded } == false)
        try await gateway.end(daemon)
    }
}

/// A row of `gattherd bond list`.
private struct ListedBond: Decodable, Equatable {
    let device: String?
    let isBonded: Bool

    enum CodingKeys: String, CodingKey {
        case device
        case isBonded = "bonded"
    }
}

extension Gateway {
    fileprivate func waitUntilFailed(_ device: String) async throws {
        try await eventually { (try? await self.state(of: device)) == "failed" }
    }

    fileprivate func bonds() async throws -> [ListedBond] {
        let (_, json) = try await command("bond", "list", "--json")
        return try JSONDecoder().decode([ListedBond].self, from: Data(json.utf8))
    }

    /// The states of a device's bond, oldest first.
    fileprivate func bondEvents(_ device: String) async throws -> [String] {
        let sql = """
            SELECT json_extract(detail, '$.state') FROM events WHERE kind = 'bond' AND device = '\(device)' ORDER BY ts
            """
        return try await database.rows(sql).compactMap(\.first)
    }

    /// The reason and detail of the device's last link failure.
    fileprivate func failure(of device: String) async throws -> String {
        let sql = """
            SELECT json_extract(detail, '$.reason') || ': ' || json_extract(detail, '$.detail') FROM events
            WHERE kind = 'link' AND device = '\(device)' AND json_extract(detail, '$.to') = 'failed'
            ORDER BY ts DESC LIMIT 1
            """
        return try await database.value(sql)
    }
}
