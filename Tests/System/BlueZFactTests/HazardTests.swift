import BlueZKit
import GattherdBlueZ
import GattherdBluetooth
import GattherdModel
import GattherdProcess
import Glibc
import TestKit
import Testing

/// Our client's handling of crashes and false reports of bluetoothd 5.66.
@Suite(.timeLimit(.minutes(10)), .serialized) struct HazardTests {
    @Test func `our client closes its sockets before it leaves the bus`() async throws {
        try await BlueZFixture.runWhileAlive(.strap("strap", count: 10, "rate: 20")) { fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                try await subscribe(ours, fixture, .socket)
            }
            try await expectAlive(fixture)
        }
    }

    @Test func `our client closes its sockets before it renews its connection`() async throws {
        try await BlueZFixture.runWhileAlive(.strap("strap", count: 10, "rate: 20")) { fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                for _ in 1...3 {
                    try await subscribe(ours, fixture, .socket)
                    try await ours.reconnectToBus()
                }
                try await subscribe(ours, fixture, .socket)
                try await expectAlive(fixture)
            }
            try await expectAlive(fixture)
        }
    }

    @Test func `a client that starts and ends ten times finds its links and leaves bluetoothd alive`()
        async throws
    {
        try await BlueZFixture.runWhileAlive(.strap("strap", count: 10, "rate: 20")) { fixture in
            for _ in 1...10 {
                try await OurClient.run(on: fixture.stack.bus) { ours in
                    try await subscribe(ours, fixture, .socket)
                }
            }
            try await expectAlive(fixture)
            for name in fixture.names {
                #expect(try await fixture.count("connect", name) == 1)
            }
        }
    }

    @Test func `a client may end with forty sockets and forty pending disconnections`() async throws {
        try await BlueZFixture.runWhileAlive(.strap("strap", count: 40, "rate: 5"), timing: "disconnect: 2s") {
            fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                let ids = try await subscribe(ours, fixture, .socket)
                await withTaskGroup { group in
                    for id in ids { group.addTask { try? await ours.central.disconnect(id) } }
                    // Answered after the disconnections have arrived; they take two seconds.
                    _ = try? await ours.central.rssi(of: ids[0])
                    await ours.central.close()
                }
            }
            try await expectAlive(fixture)
        }
    }

    @Test(arguments: [NotificationPath.socket, .signals])
    func `a client may end with pending subscriptions`(
        path: NotificationPath
    )
        async throws
    {
        try await BlueZFixture.runWhileAlive(.strap("strap", count: 10, "rate: 20")) { fixture in
            for answered in stride(from: 0, to: 10, by: 2) {
                try await OurClient.run(on: fixture.stack.bus) { ours in
                    let ids = try await ours.find(fixture.names.map { fixture.address($0) })
                    var rates: [RemoteCharacteristic] = []
                    for id in ids { rates.append(try await ours.connect(id)) }
                    await withTaskGroup { group in
                        for (number, rate) in rates.enumerated() {
                            let token = SubscriptionToken(UInt64(number))
                            group.addTask {
                                try? await ours.central.subscribe(
                                    to: rate,
                                    by: path,
                                    token: token,
                                    sink: ValueCollector()
                                )
                            }
                        }
                        for _ in 0..<answered { await group.next() }
                        await ours.central.close()
                    }
                }
                try await expectAlive(fixture)
            }
        }
    }

    @Test(arguments: [NotificationPath.socket, .signals])
    func `a subscription that is given up while the table changes ends afterwards`(path: NotificationPath) async throws
    {
        try await BlueZFixture.runWhileAlive(.strap("strap", "rate: 20, battery: 50")) { fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                let id = try #require(try await ours.find([fixture.address("strap")]).first)
                for round in 1...4 {
                    let basket = ValueCollector()
                    let rate = try await ours.connect(id)
                    let token = SubscriptionToken(UInt64(round))
                    try await ours.central.subscribe(to: rate, by: path, token: token, sink: basket)
                    try await eventually { !basket[UInt64(round)].isEmpty }
                    fixture.client.removeEvents()
                    ours.removeEvents()
                    try await fixture.order("change-services", "strap", round.isMultiple(of: 2) ? "180a" : "180f")
                    // Other objects are added too: bluetoothd adds a battery by itself.
                    try await fixture.client.waitForEvents { $0.added.contains { $0.contains("/service") } }
                    // Signals that bluetoothd sent before its answer have arrived.
                    try await ours.central.stopDiscovery(on: id.adapter)
                    try await ours.central.unsubscribe(token)
                    try await eventually { ours.events.contains(.servicesChanged(id)) }
                }
            }
            try await expectAlive(fixture)
        }
    }

    /// Connects the unconnected straps of the fixture, subscribes to them, and waits for a value of each.
    @discardableResult
    private func subscribe(
        _ ours: OurClient,
        _ fixture: BlueZFixture,
        _ path: NotificationPath
    ) async throws -> [PeripheralID] {
        let basket = ValueCollector()
        let ids = try await ours.find(fixture.names.map { fixture.address($0) })
        try await withThrowingTaskGroup { group in
            for (number, id) in ids.enumerated() {
                group.addTask {
                    let rate = try await ours.connect(id)
                    let token = SubscriptionToken(UInt64(number))
                    try await ours.central.subscribe(to: rate, by: path, token: token, sink: basket)
                }
            }
            try await group.waitForAll()
        }
        try await eventually { ids.indices.allSatisfy { !basket[UInt64($0)].isEmpty } }
        return ids
    }

    /// Expects that bluetoothd answers a call, hence has not crashed.
    ///
    /// The end of the fixture checks it as well.
    private func expectAlive(_ fixture: BlueZFixture) async throws {
        #expect(try await fixture.client.adapter.isTrue("Powered"))
        #expect(!fixture.client.events.contains(.daemon(isRunning: false)))
    }
}

/// The same hazards for the daemon, which may end suddenly.
@Suite(.timeLimit(.minutes(10)), .serialized) struct DaemonHazardTests {
    @Test func `killing the daemon with twenty sockets leaves bluetoothd alive`() async throws {
        let straps = TestPeripherals(.init("heart-rate", "strap", count: 20, "rate: 10", device: "notify: socket"))
        let gateway = try await Gateway(straps)
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await gateway.waitForReadings(5)
        daemon.signal(SIGKILL)
        _ = await daemon.wait()
        let client = try await BlueZClient(on: gateway.stack.bus)
        let first = client.device(gateway.peripherals.devices[0].address)
        #expect(try await first.isTrue("Connected"), "the link outlives the daemon")
        let rate = try await first.characteristic("2a37")
        try await eventually { try await !rate.isTrue("NotifyAcquired") }
        await client.leave()
        try await gateway.stack.stop()
    }
}
