import BlueZKit
import GattherdProcess
import Glibc
import TestKit
import Testing

/// What happens to one link: it comes back by itself, and only what the host dropped is missing.
@Suite(.timeLimit(.minutes(4)), .serialized) struct LinkFaultTests {
    @Test(arguments: ["signals", "socket"])
    func `A peripheral that ends its link again and again is ready each time`(path: String) async throws {
        let strap = Neighbourhood.Entry("heart-rate", "strap", count: 3, "rate: 20", device: "notify: \(path)")
        let gateway = try await Gateway(Neighbourhood(strap))
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

    @Test func `A peripheral out of range is lost after the supervision timeout, and ready when it is back`()
        async throws
    {
        let gateway = try await Gateway(Neighbourhood(.init("heart-rate", "strap", count: 2, "rate: 20")))
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

    @Test func `A peripheral that is silent for a while keeps its link`() async throws {
        let gateway = try await Gateway(Neighbourhood(.init("heart-rate", "strap", count: 2, "rate: 20")))
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

    @Test func `Slow answers delay the link, and lose nothing`() async throws {
        let gateway = try await Gateway(
            Neighbourhood(
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

    @Test func `A changed GATT table is read again, and the readings go on`() async throws {
        let gateway = try await Gateway(
            Neighbourhood(
                .init("heart-rate", "strap", "rate: 10, battery: 80"),
                .init("heart-rate", "other", "rate: 10")
            )
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        let change = try gateway.truth().entries.last?.t ?? 0
        try await gateway.order("change-services", "strap", "180f")
        try await gateway.waitForReadings(40, of: "strap")
        let now = try gateway.truth().entries.last?.t ?? 0
        try await gateway.expectAgreement(subscriber, gaps: [change...max(change, now)])
        #expect(try await gateway.readyCount("other") == 1)
        try await gateway.end(daemon)
    }
}

/// What a device keeps of its subscriptions when its GATT table or its profiles change while values come.
@Suite(.timeLimit(.minutes(4)), .serialized) struct KeptSubscriptionTests {
    @Test func `Services that come and go cost the others no value`() async throws {
        let gateway = try await Gateway(
            Neighbourhood(.init("heart-rate", "strap", "rate: 100, information: {model: simulated}"))
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
        try expectOneSubscription(gateway)
        try await gateway.end(daemon)
    }

    @Test func `Profiles that come and go at a reload cost the others no value`() async throws {
        let gateway = try await Gateway(
            Neighbourhood(
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
        try expectOneSubscription(gateway)
        try await gateway.end(daemon)
    }

    private func expectOneSubscription(_ gateway: Gateway) throws {
        let address = try #require(gateway.neighbourhood.devices.first?.address)
        let truth = try gateway.truth()
        #expect(truth.count("subscribe", of: address, "2a37") == 1)
        #expect(truth.count("unsubscribe", of: address, "2a37") == 0)
    }
}

extension Gateway {
    func state(of device: String) async throws -> String {
        let sql = """
            SELECT json_extract(detail, '$.to') FROM events WHERE kind = 'link' AND device = '\(device)'
            ORDER BY ts DESC LIMIT 1
            """
        return try await database.value(sql)
    }
}
