import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

/// Faults of the host: adapter, bluetoothd, the daemon itself, other programs.
@Suite(.timeLimit(.minutes(12)), .serialized) struct HostFaultTests {
    private let straps = TestPeripherals(.init("heart-rate", "strap", count: 4, "rate: 10"))

    @Test(arguments: [["power hci0 off", "power hci0 on"], ["unplug hci0", "plug hci0"]])
    func `all devices return after the adapter was off or unplugged`(orders: [String]) async throws {
        let gateway = try await Gateway(straps)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        for order in orders { try await gateway.stack.order(order.split(separator: " ").map(String.init)) }
        try await gateway.waitUntilReady(times: 2)
        try await gateway.waitForReadings(20)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test(arguments: ["graceful", "crash"])
    func `all devices return after bluetoothd restarted`(end: String) async throws {
        let gateway = try await Gateway(
            TestPeripherals(
                .init("heart-rate", "signals", count: 2, "rate: 10", device: "notify: signals"),
                .init("heart-rate", "socket", count: 2, "rate: 10", device: "notify: socket")
            )
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        try await gateway.stack.order(["restart-daemon", "500ms"] + (end == "graceful" ? ["graceful"] : []))
        try await gateway.waitUntilReady(times: 2)
        try await gateway.waitForReadings(20)
        // After a crash the kernel keeps the links for two seconds and nobody receives their notifications.
        try await gateway.expectAgreement(subscriber, tail: end == "graceful" ? 1_000_000 : 3_000_000)
        try await gateway.end(daemon)
    }

    @Test func `a hung bluetoothd makes devices offline and loses neither links nor values`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(.init("heart-rate", "strap", count: 4, "rate: 10", device: "silence: 2s"))
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        try await gateway.order("freeze-daemon", "on")
        try await gateway.waitForEvent("silence", "stalled", times: 4)
        let (_, why) = try await gateway.command("why", "strap-1")
        #expect(why.contains("bluetoothd does not answer"))
        try await gateway.order("freeze-daemon", "off")
        try await gateway.waitForEvent("silence", "resumed", times: 4)
        try await gateway.waitForReadings(20)
        try await gateway.expectAgreement(subscriber)
        #expect(try await gateway.readyCount("strap-1") == 1)
        try await gateway.end(daemon)
    }

    @Test func `links that a hung controller lost unnoticed are made again`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(.init("heart-rate", "strap", count: 4, "rate: 10", device: "silence: 3s"))
        )
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        try await gateway.order("hang", "hci0", "on")
        try await gateway.orderAll("drop")
        try await gateway.order("hang", "hci0", "off")
        try await gateway.waitUntilReady(times: 2)
        try await gateway.waitForReadings(20)
        let reasons = try await gateway.database.rows(
            "SELECT DISTINCT device FROM events WHERE json_extract(detail, '$.reason') = 'silent'"
        )
        #expect(reasons.count == 4)
        try await gateway.end(daemon)
    }

    @Test func `a killed daemon adopts its links and loses only the readings sent meanwhile`() async throws {
        let gateway = try await Gateway(straps)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        var daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        var (gaps, crashes) = ([DeliveryAudit.Gap](), [CrashState]())
        for round in 2...3 {
            try await gateway.waitForReadings(20)
            let start = try await gateway.lastTime - 500_000
            daemon.signal(SIGKILL)
            _ = await daemon.wait()
            crashes.append(try await gateway.crashState())
            daemon = try gateway.startDaemon()
            try await gateway.waitUntilReady(times: round)
            gaps.append(start...(try await gateway.lastTime))
        }
        try await gateway.waitForReadings(20)
        try await gateway.expectAgreement(subscriber, gaps: gaps, crashes: crashes)
        for (_, address) in gateway.peripherals.devices {
            #expect(try await gateway.truth().connections(of: address) == 1, "the links were adopted")
        }
        try await gateway.end(daemon)
    }

    @Test func `committed readings arrive in order after a broker outage and a killed daemon`()
        async throws
    {
        let gateway = try await Gateway(straps)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        var daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        await gateway.broker.kill()
        try await gateway.waitForReadings(20)
        let start = try await gateway.lastTime - 500_000
        daemon.signal(SIGKILL)
        _ = await daemon.wait()
        let crash = try await gateway.crashState()
        daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady(times: 2)
        let gap = start...(try await gateway.lastTime)
        try await gateway.waitForReadings(20)
        try await gateway.broker.start()
        try await gateway.silence()
        try await gateway.waitUntilDelivered()
        try await gateway.expectAgreement(subscriber, gaps: [gap], crashes: [crash])
        try await gateway.end(daemon)
    }

    @Test func `a device connected by another program is adopted`() async throws {
        let gateway = try await Gateway(straps)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let strap = try await BlueZClient(on: gateway.stack.bus).device(gateway.peripherals.devices[0].address)
        try await strap.findAndConnect()
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        #expect(try await gateway.truth().connections(of: gateway.peripherals.devices[0].address) == 1)
        try await strap.call("Disconnect")
        try await eventually { try await gateway.readyCount("strap-1") == 2 }
        try await gateway.waitForReadings(20)
        try await gateway.expectAgreement(subscriber, tail: 3_000_000)
        try await gateway.end(daemon)
    }
}

extension Gateway {
    /// The time of the newest truth event, in microseconds since 1970.
    var lastTime: Int {
        get async throws { try await truth().entries.last?.t ?? 0 }
    }
}
