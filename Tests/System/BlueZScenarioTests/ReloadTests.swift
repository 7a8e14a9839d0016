import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

@Suite(.timeLimit(.minutes(12))) struct ReloadTests {
    @Test func `adding and removing devices loses no reading of the others`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(.init("heart-rate", "strap", "rate: 20"), .init("heart-rate", "other", "rate: 20"))
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        var removed: [Substring] = []
        try gateway.editConfiguration { lines in
            removed = lines.filter { $0.contains("name: other") }
            return lines.filter { !$0.contains("name: other") }
        }
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("device", "dismissed")
        try await gateway.waitForReadings(20, of: "strap")
        #expect(try await gateway.command("status").1.contains("other") == false)
        try gateway.editConfiguration { $0 + removed }
        daemon.signal(SIGHUP)
        try await gateway.waitUntilReady(times: 1)
        try await gateway.waitForReadings(20)
        #expect(try await gateway.readyCount("strap") == 1)
        #expect(try await gateway.readyCount("other") == 2)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `an invalid configuration is reported and changes nothing`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", "rate: 20")))
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try gateway.editConfiguration { $0.filter { !$0.contains("name: strap") } + ["  - {nmae: strap}"] }
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("daemon", "reload_failed")
        #expect(gateway.log.contains("nmae"))
        try await gateway.waitForReadings(20)
        #expect(try await gateway.readyCount("strap") == 1)
        try await gateway.end(daemon)
    }

    private static let tag = "0512FC5394C37C0004FFFC040CAC36420001CBB8334C884F"

    private static func status(of device: String, _ gateway: Gateway) async throws -> String? {
        try await gateway.command("status").1.split(separator: "\n").first { $0.hasPrefix(device + " ") }.map(
            String.init
        )
    }

    @Test func `a device changed to advertisements only and back reports its state correctly`()
        async throws
    {
        let scenario = "rate: 20, advertise: {manufacturer_data: {0x0499: '\(Self.tag)'}}"
        let gateway = try await Gateway(
            TestPeripherals(.init("heart-rate", "tag", scenario), .init("heart-rate", "other", "rate: 20"))
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/tag/availability")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        let more = ", profiles: [ruuvitag]}"
        try gateway.editConfiguration { lines in
            lines.map { $0.contains("name: tag") ? $0.dropLast() + more : $0 }
        }
        daemon.signal(SIGHUP)
        try await eventually { try await gateway.readyCount("tag") == 2 }
        #expect(try await Self.status(of: "tag", gateway)?.contains("ready") == true)
        let stream = "SELECT DISTINCT stream FROM history WHERE device = 'tag' AND source = 'advert'"
        try await eventually { try await gateway.database.rows(stream) == [["ruuvi"]] }
        try gateway.editConfiguration { lines in
            lines.map { $0.contains("name: tag") ? $0.dropLast(more.count) + "}" : $0 }
        }
        daemon.signal(SIGHUP)
        try await eventually { try await gateway.readyCount("tag") == 3 }
        try await gateway.waitForReadings(20)
        #expect(try await Self.status(of: "tag", gateway)?.contains("ready") == true)
        #expect(try await gateway.readyCount("other") == 1)
        let events = try await gateway.database.rows(
            "SELECT json_extract(detail, '$.state') FROM events WHERE kind = 'device' AND device = 'tag' ORDER BY ts"
        )
        #expect(events.compactMap(\.first) == ["dismissed", "enrolled", "dismissed", "enrolled"])
        await subscriber.messages { $0.count { $0.payload == "online" } == 3 && $0.last?.payload == "online" }
        try await gateway.end(daemon)
    }

    private static func profile(scale: String) -> String {
        """
        contract: 1
        profile: mine
        title: Mine
        services: [180d]
        characteristics:
          - uuid: 2a37
            stream: beats
            subscribe: notify
            fields: [{skip: 1}, {metric: beats, type: u8, scale: \(scale)}]

        """
    }

    @Test func `a changed profile is applied on existing links and an invalid one is refused`()
        async throws
    {
        let folder = try TemporaryFolder()
        _ = try folder.write(Self.profile(scale: "1"), to: "mine.yaml")
        let gateway = try await Gateway(
            TestPeripherals(
                .init("heart-rate", "strap", "rate: 20", device: "profiles: [mine]"),
                .init("heart-rate", "other", "rate: 20", device: "profiles: [heart-rate]")
            )
        )
        let installed = SharedLibrary.root + "/Plugins/Standard"
        try gateway.editConfiguration { ["profiles: {paths: [\(installed), \(folder.path)]}"] + $0 }
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        let connected = try await Self.connections(gateway)
        let large = "SELECT count(*) > 0 FROM history WHERE metric = 'beats' AND value > 1000"
        #expect(try await gateway.database.value(large) == "0")
        _ = try folder.write(Self.profile(scale: "100"), to: "mine.yaml")
        daemon.signal(SIGHUP)
        try await eventually { try await gateway.database.value(large) == "1" }
        #expect(try await gateway.readyCount("strap") == 2)
        _ = try folder.write(Self.profile(scale: "ten"), to: "mine.yaml")
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("daemon", "reload_failed")
        #expect(gateway.log.contains("mine.yaml:9:"))
        try await gateway.waitForReadings(20)
        #expect(try await gateway.readyCount("strap") == 2)
        #expect(try await gateway.readyCount("other") == 1)
        #expect(try await Self.connections(gateway) == connected)
        try await gateway.end(daemon)
    }

    @Test func `a world-writable profile folder is refused, also through a symbolic link`()
        async throws
    {
        let (folder, elsewhere) = (try TemporaryFolder(), try TemporaryFolder())
        _ = try folder.write(Self.profile(scale: "1"), to: "mine.yaml")
        unsafe symlink(folder.path, elsewhere.file("profiles"))
        let gateway = try await Gateway(
            TestPeripherals(.init("heart-rate", "strap", "rate: 20", device: "profiles: [mine]"))
        )
        try gateway.editConfiguration { ["profiles: {paths: [\(elsewhere.file("profiles"))]}"] + $0 }
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        // The device no longer requires the profile. The refused folder is the only error.
        try gateway.editConfiguration { $0.map { $0.replacing(", profiles: [mine]", with: "") } }
        unsafe chmod(folder.path, 0o777)
        daemon.signal(SIGHUP)
        try await gateway.waitForEvent("daemon", "reload_failed")
        try await gateway.waitForReadings(20)
        #expect(try await gateway.readyCount("strap") == 1)
        try await gateway.end(daemon)
    }

    private static func connections(_ gateway: Gateway) async throws -> String {
        try await gateway.database.value(
            "SELECT count(*) FROM events WHERE kind = 'link' AND json_extract(detail, '$.to') = 'connecting'"
        )
    }
}
