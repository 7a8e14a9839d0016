import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import Testing

/// Subscriptions that end while bluetoothd discovers a GATT table again.
@Suite(.timeLimit(.minutes(1))) struct TableChangeTests {
    private static let token = SubscriptionToken(1)

    /// Short times until a table counts as quiet, and the given time until sessions end.
    private static func limits(holding: Duration) -> BlueZCentral.Limits {
        var limits = BlueZCentral.Limits()
        (limits.quietAfterGrowth, limits.quietAfterShrinkage) = (.milliseconds(100), .milliseconds(100))
        limits.sessionHold = holding
        return limits
    }

    /// Waits until the central has received all signals that the fake sent before.
    private func synchronise(_ stage: Stage) async throws {
        try await stage.central.stopDiscovery(on: Stage.adapter)
    }

    private func addedServices(_ stage: Stage, _ count: Int) async {
        for number in 1...count {
            await stage.fake.add(
                FakeBlueZ.device + "/service00f\(number)",
                "org.bluez.GattService1",
                ["UUID": .string("0000180a-0000-1000-8000-00805f9b34fb"), "Device": .objectPath(FakeBlueZ.device)]
            )
        }
    }

    @Test(arguments: [NotificationPath.signals, .socket])
    func `a second change before the table is read again keeps sessions too`(path: NotificationPath) async throws {
        try await Stage.run(limits: Self.limits(holding: .seconds(600))) { stage in
            let characteristic = try await stage.connected()
            let pair = SocketPair()
            await stage.fake.on("AcquireNotify") { _, call in try pair.answer(call) }
            try await stage.subscribe(characteristic, path)
            await stage.fake.remove(FakeBlueZ.control)
            try await stage.events.expect(.servicesChanged(Stage.peripheral))
            await addedServices(stage, 1)
            try await synchronise(stage)
            try await stage.central.unsubscribe(Self.token)
            #expect(await !stage.fake.asked.contains("StopNotify"))
            try await stage.events.expect(.servicesChanged(Stage.peripheral))
            // A new subscriber uses the session, which is still there.
            try await stage.subscribe(characteristic, path)
            if path == .socket { pair.send([5]) } else { await stage.fake.notify([5]) }
            #expect(await stage.sink.values(1) == [[5]])
            #expect(await stage.fake.asked.count { ["StartNotify", "AcquireNotify"].contains($0) } == 1)
        }
    }

    private func successor(_ stage: Stage, of former: RemoteCharacteristic) async -> Result<String?, BluetoothError> {
        let central = stage.central
        return await outcome { () throws(BluetoothError) in
            try await central.successor(of: former, timeout: .seconds(40))?.handle
        }
    }

    @Test func `a characteristic that comes again is found while the table changes`() async throws {
        var limits = BlueZCentral.Limits()
        (limits.quietAfterGrowth, limits.quietAfterShrinkage) = (.seconds(600), .seconds(600))
        try await Stage.run(limits: limits) { stage in
            let former = try await stage.connected()
            await stage.fake.remove(FakeBlueZ.measurement)
            try await synchronise(stage)
            async let found = successor(stage, of: former)
            let moved = FakeBlueZ.service + "/char0020"
            await stage.fake.add(
                moved,
                "org.bluez.GattCharacteristic1",
                [
                    "UUID": .string("00002a37-0000-1000-8000-00805f9b34fb"), "Service": .objectPath(FakeBlueZ.service),
                    "Flags": .strings(["notify"]),
                ]
            )
            #expect(try await found.get() == moved)
        }
    }

    @Test func `a characteristic that does not come again is not found in the changed table`() async throws {
        try await Stage.run(limits: Self.limits(holding: .seconds(600))) { stage in
            let former = try await stage.connected()
            await stage.fake.remove(FakeBlueZ.measurement)
            try await synchronise(stage)
            #expect(try await successor(stage, of: former).get() == nil)
        }
    }

    @Test func `a session is kept when its characteristic is removed long after others were added`() async throws {
        try await Stage.run(limits: Self.limits(holding: .seconds(600))) { stage in
            try await stage.subscribe(try await stage.connected())
            await addedServices(stage, 2)
            try await synchronise(stage)
            try await stage.central.unsubscribe(Self.token)
            try await stage.events.expect(.servicesChanged(Stage.peripheral))
            try await synchronise(stage)
            await stage.fake.remove(FakeBlueZ.measurement)
            try await stage.events.expect(.servicesChanged(Stage.peripheral))
            await stage.fake.setConnected(false)
            try await stage.events.expect(.disconnected(Stage.peripheral))
            try await synchronise(stage)
            #expect(await !stage.fake.asked.contains("StopNotify"))
        }
    }

    @Test(arguments: [NotificationPath.signals, .socket])
    func `held sessions end when the table has not changed for long`(path: NotificationPath) async throws {
        try await Stage.run(limits: Self.limits(holding: .milliseconds(300))) { stage in
            let characteristic = try await stage.connected()
            let pair = SocketPair()
            await stage.fake.on("AcquireNotify") { _, call in try pair.answer(call) }
            try await stage.subscribe(characteristic, path)
            await stage.fake.remove(FakeBlueZ.control)
            try await synchronise(stage)
            try await stage.central.unsubscribe(Self.token)
            if path == .socket { pair.waitForClose() } else { await stage.fake.waitForCall("StopNotify") }
            #expect(stage.sink.values.isEmpty)
        }
    }
}
