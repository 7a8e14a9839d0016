import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

/// Devices that other clients use at the same time.
@Suite(.timeLimit(.minutes(12))) struct SharingTests {
    /// A strap, whose measurement cannot be read, and a sensor with readable values.
    private static let peripherals = TestPeripherals(
        .init("heart-rate", "strap", "rate: 20"),
        .init("environmental", "sensor", "rate: 10")
    )

    private func measurements(_ gateway: Gateway, of client: BlueZClient) async throws -> [BlueZObject] {
        var found: [BlueZObject] = []
        for (device, uuid) in [("strap", "2a37"), ("sensor", "2a6e")] {
            let address = gateway.peripherals.devices.first { $0.name == device }?.address ?? ""
            found.append(try await client.device(address).characteristic(uuid))
        }
        return found
    }

    @Test func `each notification is stored once, with other clients subscribed too`() async throws {
        let gateway = try await Gateway(Self.peripherals)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(10)
        let client = try await BlueZClient(on: gateway.stack.bus)
        for value in try await measurements(gateway, of: client) { try await value.call("StartNotify") }
        try await gateway.waitForReadings(20)
        let second = try await BlueZClient(on: gateway.stack.bus)
        for value in try await measurements(gateway, of: second) { try await value.call("StartNotify") }
        try await gateway.waitForReadings(20)
        for value in try await measurements(gateway, of: client) { try await value.call("StopNotify") }
        try await gateway.waitForReadings(20)
        await second.leave()
        try await gateway.waitForReadings(20)
        await client.leave()
        try await expectEachStoredOnce(gateway, subscriber)
        try await gateway.end(daemon)
    }

    @Test func `a value that another client reads is not stored as a notification`() async throws {
        let gateway = try await Gateway(Self.peripherals)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(10)
        let client = try await BlueZClient(on: gateway.stack.bus)
        let value = try await measurements(gateway, of: client)[1]
        for _ in 0..<40 { _ = try await value.read() }
        try await value.call("StartNotify")
        for _ in 0..<40 { _ = try await value.read() }
        await client.leave()
        try await expectEachStoredOnce(gateway, subscriber)
        try await gateway.end(daemon)
    }

    @Test func `notifications that another client has acquired do not end the link`() async throws {
        let gateway = try await Gateway(Self.peripherals)
        let client = try await BlueZClient(on: gateway.stack.bus)
        let address = gateway.peripherals.devices.first { $0.name == "strap" }?.address ?? ""
        let strap = client.device(address)
        try await strap.findAndConnect()
        let socket = try await strap.characteristic("2a37").acquire()
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(10, of: "sensor")
        #expect(!socket.isHungUp, "the link of the other client ended")
        socket.close()
        try await gateway.waitForReadings(10, of: "strap")
        await client.leave()
        try await gateway.end(daemon)
    }

    /// Expects that each notification is stored once: as a notification, or as a read if another client may have read
    /// it.
    private func expectEachStoredOnce(_ gateway: Gateway, _ subscriber: Subscriber) async throws {
        try await gateway.silence()
        try await gateway.waitUntilDelivered()
        // The last messages may still be on their way to the subscriber.
        let audit = try await gateway.audit(of: subscriber) { audit in
            audit.problems().allSatisfy { $0.isLoss && !$0.description.contains("strap") }
        }
        let problems = audit.problems()
        let (lost, others) = (problems.filter(\.isLoss), problems.filter { !$0.isLoss })
        #expect(others.isEmpty, "\(others.count): \(others.prefix(12))")
        #expect(!lost.contains { $0.description.contains("strap") }, "a value that cannot be read is a notification")
        let read = "SELECT count(DISTINCT seq) FROM history WHERE device = 'sensor' AND source = 'read'"
        let readCount = Int(try await gateway.database.value(read)) ?? 0
        #expect(lost.count <= readCount, "\(lost.count) lost, \(readCount) read: \(lost.prefix(12))")
        #expect(lost.count <= 40, "few notifications coincide with a read of another client")
    }

    @Test func `notifications sent before the daemon stops are stored and delivered`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", "rate: 100")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        for _ in 0..<3 {
            let daemon = try gateway.startDaemon()
            try await gateway.waitForReadings(200)
            try await gateway.order("rate", "strap", "0")
            daemon.signal(SIGTERM)
            #expect(await daemon.wait() == .exited(0))
            let audit = try await gateway.audit(of: subscriber) { $0.problems(tail: 0).isEmpty }
            let problems = audit.problems(tail: 0)
            #expect(problems.isEmpty, "\(problems.count): \(problems.prefix(12))")
            try await gateway.order("rate", "strap", "100")
        }
        try await gateway.stack.stop()
    }
}

extension DeliveryAudit.Problem {
    fileprivate var isLoss: Bool { if case .lost = self { true } else { false } }
}
