import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

/// The rules of `enrol`.
@Suite(.timeLimit(.minutes(12)), .serialized) struct EnrolmentTests {
    private static let guest = "heart-rate-c0de00020001"
    private static let stranger = "c0de00030001"

    /// A gateway with a configured device, a guest that the rule matches, and a stranger that it does not.
    private func gateway(_ rule: String) async throws -> Gateway {
        let gateway = try await Gateway(
            TestPeripherals(
                .init("heart-rate", "strap", "rate: 10"),
                .init("heart-rate", "guest", "rate: 10", device: nil),
                .init("number-service", "stranger", device: nil)
            )
        )
        try gateway.editConfiguration { $0 + ["enrol:", "  - \(rule)"] }
        return gateway
    }

    private func isListed(_ device: String, _ gateway: Gateway) async throws -> Bool {
        try await gateway.command("status").1.contains(device)
    }

    private func end(_ daemon: ChildProcess) async {
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }

    @Test func `an enrol rule enrols only matching peripherals, and they survive a restart while absent`()
        async throws
    {
        let gateway = try await gateway("{match: {service: 180d, rssi_at_least: -100}, name: '{profile}-{address}'}")
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let house = try await Subscriber(gateway.broker, to: "homeassistant/#")
        var daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.readyCount(Self.guest) == 1 }
        let readings = "SELECT count(*) >= 20 FROM history WHERE device = '\(Self.guest)' AND metric = 'heart_rate'"
        try await eventually { try await gateway.database.value(readings) == "1" }
        let messages = await subscriber.messages { all in
            all.contains { $0.topic == "gattherd/test/\(Self.guest)/availability" && $0.payload == "online" }
                && all.contains { $0.topic == "gattherd/test/\(Self.guest)/heart_rate" }
                && all.contains { $0.topic.hasSuffix("/info") && $0.payload.contains(Self.guest) }
        }
        #expect(!messages.contains { $0.topic.contains(Self.stranger) })
        let described = await house.messages { $0.contains { $0.topic.contains("c0de00020001") } }
        #expect(described.count { $0.topic.contains("c0de00010001") } == 1)
        #expect(try await gateway.readyCount("strap") == 1)
        #expect(try await gateway.command("why", Self.guest).0 == 0)
        await end(daemon)

        try await gateway.order("vanish", "guest")
        daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady(times: 2)
        #expect(try await isListed(Self.guest, gateway))
        #expect(try await gateway.readyCount(Self.guest) == 1)
        try await gateway.order("appear", "guest")
        try await eventually { try await gateway.readyCount(Self.guest) == 2 }
        #expect(try await !isListed(Self.stranger, gateway))
        try await gateway.end(daemon)
    }

    @Test func `removing an enrol rule removes its devices, and restoring it brings them back`() async throws {
        let gateway = try await gateway("{match: {service: 180d}, name: '{profile}-{address}'}")
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/\(Self.guest)/availability")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.readyCount(Self.guest) == 1 }
        try gateway.editConfiguration { lines in lines.map { $0.contains("match:") ? "  #" + $0 : $0 } }
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("device", "dismissed")
        await subscriber.messages { $0.last?.payload == "" }
        #expect(try await !isListed(Self.guest, gateway))
        try gateway.editConfiguration { lines in lines.map { $0.contains("match:") ? $0.dropFirst(3) : $0 } }
        daemon.signal(SIGHUP)
        await subscriber.messages { $0.last?.payload == "online" }
        try await eventually { try await gateway.readyCount(Self.guest) == 2 }
        #expect(try await gateway.readyCount("strap") == 1)
        try await gateway.end(daemon)
    }

    @Test func `no enrolled device is removed while history cannot be read`() async throws {
        let gateway = try await gateway("{match: {service: 180d}, name: '{profile}-{address}'}")
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/+/availability")
        var daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.readyCount(Self.guest) == 1 }
        await end(daemon)
        try await gateway.order("vanish", "guest")
        let folder = try TemporaryFolder()
        let locked = folder.file("locked")
        let hold = ["-batch", gateway.databasePath, "BEGIN EXCLUSIVE", ".shell touch \(locked); sleep 60"]
        let locker = try ChildProcess("sqlite3", hold)
        try await eventually { unsafe access(locked, F_OK) == 0 }
        daemon = try gateway.startDaemon()
        let strap = "gattherd/test/strap/availability"
        await subscriber.messages { $0.count { $0.topic == strap && $0.payload == "online" } == 2 }
        #expect(gateway.log.contains("enrolled devices could not be read yet"))
        #expect(try await !isListed(Self.guest, gateway))
        locker.signal(SIGKILL)
        try await eventually { try await isListed(Self.guest, gateway) }
        #expect(!subscriber.messages.contains { $0.payload.isEmpty })
        try await gateway.end(daemon)
    }

    @Test func `an enrolled device is removed after forget_after and enrolled again when it returns`() async throws {
        let gateway = try await gateway("{match: {service: 180d}, name: '{profile}-{address}', forget_after: 4s}")
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/\(Self.guest)/availability")
        var daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.readyCount(Self.guest) > 0 }
        await end(daemon)
        try await gateway.order("vanish", "guest")
        daemon = try gateway.startDaemon()
        for _ in 0..<2 {
            try await gateway.waitForEvent("device", "dismissed")
            try await eventually { try await !isListed(Self.guest, gateway) }
            await subscriber.messages { $0.last?.payload == "" }
            let before = try await gateway.readyCount(Self.guest)
            try await gateway.order("appear", "guest")
            try await eventually { try await gateway.readyCount(Self.guest) > before }
            try await gateway.order("vanish", "guest")
        }
        try await gateway.waitUntilReady(times: 2)
        #expect(try await gateway.readyCount("strap") == 2)
        try await gateway.end(daemon)
    }

    @Test func `an enrol rule can match a device that only advertises, without connecting to it`() async throws {
        let beacon = TestPeripherals.Entry("beacon", "tag", "advertise: {service_data: {fcd2: '400161'}}", device: nil)
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap"), beacon))
        let rule = "{match: {service: fcd2}, name: 'tag-{address}', profiles: [bthome]}"
        try gateway.editConfiguration { $0 + ["enrol:", "  - \(rule)"] }
        let daemon = try gateway.startDaemon()
        let battery = "SELECT DISTINCT device, value, source FROM history WHERE metric = 'battery_level'"
        try await eventually { (try? await gateway.database.rows(battery)) == [["tag-c0de00020001", "97", "advert"]] }
        let tried =
            "SELECT count(*) FROM events WHERE device LIKE 'tag-%' AND json_extract(detail, '$.to') = 'connecting'"
        #expect(try await gateway.database.value(tried) == "0")
        try await gateway.end(daemon)
    }
}
