import BlueZKit
import TestKit
import Testing

/// Many devices at once, among unknown peripherals.
@Suite(.timeLimit(.minutes(15)), .serialized) struct ManyDeviceTests {
    @Test func `twenty devices become ready and all their readings arrive`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", count: 20, "rate: 10, rr: 1")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(50)
        try await gateway.expectAgreement(subscriber)
        for (device, _) in gateway.peripherals.devices { #expect(try await gateway.readyCount(device) == 1) }
        try await gateway.end(daemon)
    }

    @Test func `ten links lost at once are all restored`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", count: 10, "rate: 10")))
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(20)
        try await gateway.orderAll("drop")
        try await gateway.waitUntilReady(times: 2)
        try await gateway.waitForReadings(20)
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }

    @Test func `only configured devices are connected among beacons and unknown peripherals`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(
                .init("heart-rate", "strap", count: 3, "rate: 10, energy: true, rr: 2, battery: 90"),
                .init("number-service", "dial", "rate: 5"),
                .init("environmental", "garden", "rate: 5"),
                .init("heart-rate", "stranger", count: 3, "rate: 10", device: nil),
                .init(
                    "battery",
                    "beacon",
                    count: 5,
                    "advertise: {connectable: false, service_data: {fcd2: \"40 01 64\"}}",
                    device: nil
                )
            )
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(30)
        try await gateway.expectAgreement(subscriber)
        let connected = Set(try await gateway.truth().entries.filter { $0.event == "connect" }.compactMap(\.dev))
        #expect(connected == Set(gateway.peripherals.devices.map(\.address)))
        try await gateway.end(daemon)
    }

    @Test func `a configured device that does not advertise does not delay the others`() async throws {
        let gateway = try await Gateway(
            TestPeripherals(
                .init("heart-rate", "absent", "present: false"),
                .init("heart-rate", "strap", count: 3, "rate: 10")
            )
        )
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/#")
        let daemon = try gateway.startDaemon()
        for number in 1...3 { try await eventually { try await gateway.readyCount("strap-\(number)") == 1 } }
        try await gateway.order("appear", "absent")
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(1, of: "absent")
        try await gateway.expectAgreement(subscriber)
        try await gateway.end(daemon)
    }
}
