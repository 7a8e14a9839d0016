import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

/// Faults of single links.
///
/// Links recover, and only values that the host dropped are missing.
@Suite(.timeLimit(.minutes(12)), .serialized) struct LinkFaultTests {
    @Test(arguments: ["signals", "socket"])
    func `a peripheral that keeps ending its link becomes ready again each time`(path: String) async throws {
        let strap = TestPeripherals.Entry("heart-rate", "strap", count: 3, "rate: 20", device: "notify: \(path)")
        let gateway = try await Gateway(TestPeripherals(strap))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        for time in 2...4 {
            try await gateway.waitForReadings(30)
            try await gateway.orderAll("drop")
            try await gateway.waitUntilReady(times: time)
        }
        try await gateway.waitForReadings(30)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `a peripheral out of range times out and becomes ready when it returns`()
        async throws
    {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", count: 2, "rate: 20")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        try await gateway.order("vanish", "strap-1")
        try await eventually { try await gateway.state(of: "strap-1") != "ready" }
        try await gateway.waitForReadings(40, of: "strap-2")
        try await gateway.order("appear", "strap-1")
        try await eventually { try await gateway.readyCount("strap-1") == 2 }
        try await gateway.waitForReadings(20)
        try await gateway.expectAgreement(subscriber)
        #expect(try await gateway.readyCount("strap-2") == 1)
        try await gateway.end(daemon)
    }

    @Test func `a peripheral that pauses its notifications keeps its link`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", count: 2, "rate: 20")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.order("silence", "strap-1", "notifications")
        try await gateway.waitForReadings(60, of: "strap-2")
        try await gateway.order("silence", "strap-1", "off")
        try await gateway.waitForReadings(20)
        try await gateway.expectAgreement(subscriber)
        #expect(try await gateway.readyCount("strap-1") == 1)
        try await gateway.end(daemon)
    }

    @Test func `slow ATT responses delay the link and lose nothing`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(
                .init("heart-rate", "slow", "rate: 10, att_latency: 200ms"),
                .init("heart-rate", "strap", "rate: 10")
            )
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(30)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `a changed GATT table is discovered again and readings continue`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(
                .init("heart-rate", "strap", "rate: 10, battery: 80"),
                .init("heart-rate", "other", "rate: 10")
            )
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        // Values that are on their way may be lost.
        let change = try await gateway.lastTime - 200_000
        try await gateway.order("change-services", "strap", "180f")
        try await gateway.waitForReadings(40, of: "strap")
        let now = try await gateway.lastTime
        try await gateway.expectAgreement(subscriber, gaps: [change...max(change, now)])
        #expect(try await gateway.readyCount("other") == 1)
        try await gateway.end(daemon)
    }
}

/// Subscriptions that a device keeps while its GATT table or its profiles change.
@Suite(.timeLimit(.minutes(12)), .serialized) struct KeptSubscriptionTests {
    @Test func `adding and removing services loses no value of the other services`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(.init("heart-rate", "strap", "rate: 100, information: {model: simulated}"))
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(100)
        for (time, hidden) in [(2, ["180a"]), (3, [])] {
            try await gateway.stack.order(["hide-services", "strap"] + hidden)
            try await gateway.waitUntilReady(times: time)
            try await gateway.waitForReadings(100)
        }
        try await gateway.expectAgreement(subscriber)
        try await expectOneSubscription(gateway)
        try await gateway.end(daemon)
    }

    @Test func `adding and removing profiles by a reload loses no value of the other profiles`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(
                .init("heart-rate", "strap", "rate: 100, battery: 80", device: "profiles: [heart-rate]")
            )
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(100)
        for (time, profiles) in [(2, "[battery, heart-rate]"), (3, "[heart-rate]")] {
            try gateway.editConfiguration { lines in
                lines.map { line in
                    guard let place = line.firstRange(of: "profiles: [") else { return line }
                    let rest = line[place.upperBound...].drop { $0 != "]" }.dropFirst()
                    return line[..<place.lowerBound] + "profiles: " + profiles + rest
                }
            }
            daemon.signal(SIGHUP)
            try await gateway.waitUntilReady(times: time)
            try await gateway.waitForReadings(100)
        }
        try await gateway.expectAgreement(subscriber)
        try await expectOneSubscription(gateway)
        try await gateway.end(daemon)
    }

    private func expectOneSubscription(_ gateway: Gateway) async throws {
        let address = try #require(gateway.peripherals.devices.first?.address)
        let truth = try await gateway.truth()
        #expect(truth.count("subscribe", of: address, "2a37") == 1)
        #expect(truth.count("unsubscribe", of: address, "2a37") == 0)
    }
}

extension Gateway {
    /// The device's newest link state.
    func state(of device: String) async throws -> String {
        let sql = """
            SELECT json_extract(detail, '$.to') FROM events WHERE kind = 'link' AND device = '\(device)'
            ORDER BY ts DESC LIMIT 1
            """
        return try await database.value(sql)
    }
}
