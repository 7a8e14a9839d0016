import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

/// Devices that only advertise, beside one that is connected.
@Suite(.timeLimit(.minutes(12)), .serialized) struct AdvertisingTests {
    /// RuuviTag frames with these sequence numbers.
    private static func ruuvi(_ numbers: ClosedRange<UInt8>) -> String {
        let frames = numbers.map { number in
            "'0512FC5394C37C0004FFFC040CAC364200\(number < 16 ? "0" : "")\(String(number, radix: 16))CBB8334C884F'"
        }
        return "manufacturer_data: {0x0499: [\(frames.joined(separator: ", "))]}"
    }

    private static let tag = TestPeripherals.Entry(
        "beacon",
        "tag",
        "advertise: {turn: 500ms, \(ruuvi(1...200))}",
        device: "profiles: [ruuvitag], silence: 3s"
    )
    /// The example of bthome.io, encrypted for another address.
    ///
    /// No key is configured.
    private static let lock = TestPeripherals.Entry(
        "beacon",
        "lock",
        "advertise: {service_data: {fcd2: '41A47266C95F730011223378237214'}}",
        device: "profiles: [bthome]"
    )

    @Test func `each reading of a tag is stored once, without disturbing a connected device`() async throws {
        let strap = TestPeripherals.Entry("heart-rate", "strap", "rate: 5")
        let gateway = try await Gateway(TestPeripherals(Self.tag, strap))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/tag/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(12)
        let numbers = try await gateway.database.rows(
            "SELECT value FROM history WHERE device = 'tag' AND metric = 'measurement_sequence' ORDER BY seq"
        ).compactMap { $0.first.flatMap { Int($0) } }
        // The tag's numbers begin again after 200. It advertises each for half a second, which may pass unheard.
        let steps = zip(numbers, numbers.dropFirst()).map { ($1 - $0 + 200) % 200 }
        #expect(steps.allSatisfy { (1...20).contains($0) }, "\(numbers)")
        #expect(
            try await gateway.database.value("SELECT DISTINCT source FROM history WHERE device = 'tag'") == "advert"
        )
        #expect(try await gateway.readyCount("strap") == 1)
        await subscriber.messages { all in
            all.contains { $0.topic.hasSuffix("/tag/availability") && $0.payload == "online" }
                && all.contains { $0.payload.contains(#""source":"advert","temperature":24.3,"humidity":53.49,"#) }
        }
        try await gateway.end(daemon)
    }

    @Test func `a tag that disappears is offline, and online when it returns`() async throws {
        let gateway = try await Gateway(TestPeripherals(Self.tag))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.order("vanish", "tag")
        try await eventually {
            try await gateway.database.value(
                "SELECT count(*) FROM events WHERE device = 'tag' AND json_extract(detail, '$.reason') = 'silent'"
            ) == "1"
        }
        try await gateway.order("appear", "tag")
        try await gateway.waitUntilReady(times: 2)
        try await gateway.end(daemon)
    }

    @Test func `an advertisement encrypted with an unknown key is one reject a minute`() async throws {
        let gateway = try await Gateway(TestPeripherals(Self.lock))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.rejectCount("lock") == 1 }
        let reason = try await gateway.database.value("SELECT reason FROM rejects WHERE characteristic = 'fcd2'")
        #expect(reason.contains("bind_key_file"))
        try await gateway.end(daemon)
    }

    /// The contents of bthome.io's example, encrypted for the address of the peripherals's device, with counters 0
    /// and 1.
    private static let encryptedFrames = ["41becce0953e0f00000000a329431a", "411f87d565a518010000001e51fbf1"]

    @Test func `a replayed advertisement is rejected after a restart, but accepted once the key file changes`()
        async throws
    {
        let folder = try TemporaryFolder()
        let key = "231d39c1d7cc1ab1aee224cd096db932\n"
        let file = try folder.write(key, to: "door.key")
        try #require(unsafe chmod(file, 0o600) == 0)
        let frames = Self.encryptedFrames.map { "'\($0)'" }.joined(separator: ", ")
        let door = TestPeripherals.Entry(
            "beacon",
            "door",
            "advertise: {turn: 200ms, service_data: {fcd2: [\(frames)]}}",
            device: "profiles: [bthome], bind_key_file: \(file)"
        )
        let gateway = try await Gateway(TestPeripherals(door))
        var daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { try await gateway.rejectCount("door") > 0 }
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        // The higher counter may be received first.
        let before = (try await Self.readings(gateway), try await gateway.rejectCount("door"))
        daemon = try gateway.startDaemon()
        try await eventually { try await gateway.rejectCount("door") > before.1 }
        #expect(try await Self.readings(gateway) == before.0)
        _ = try folder.write(key + "new battery\n", to: "door.key")
        try #require(unsafe chmod(file, 0o600) == 0)
        daemon.signal(SIGHUP)
        try await eventually { try await Self.readings(gateway) > before.0 }
        try await gateway.end(daemon)
    }

    private static func readings(_ gateway: Gateway) async throws -> Int {
        Int(try await gateway.database.value("SELECT count(DISTINCT seq) FROM history WHERE device = 'door'")) ?? 0
    }
}
