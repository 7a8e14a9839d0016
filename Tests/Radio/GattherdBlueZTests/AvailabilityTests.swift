import GattherdBlueZ
import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdSync
import TestKit
import Testing

@Suite(.timeLimit(.minutes(3))) struct AvailabilityTests {
    private static let quick: BlueZCentral.Limits = {
        var limits = BlueZCentral.Limits()
        limits.retry = .milliseconds(1)...(.milliseconds(20))
        return limits
    }()

    @Test func `existing objects are published at the start, the adapter last`() async throws {
        try await Stage.run { stage in
            let adapter = AdapterStatus(
                address: Stage.adapter,
                name: "hci0",
                isPowered: true,
                isDiscovering: false
            )
            var peripheral = PeripheralStatus(id: Stage.peripheral)
            peripheral.name = "strap"
            peripheral.rssi = -60
            try await stage.events.expect(.peripheralChanged(peripheral))
            try await stage.events.expect(.adapterChanged(adapter))
            #expect(stage.events.seen.count == 3)
        }
    }

    @Test func `a missing bus is published, and found when it appears`() async throws {
        let first = try PrivateBus()
        await first.kill()
        let central = BlueZCentral(bus: .address(first.address), limits: Self.quick, log: .silent)
        let events = EventReader(central.events)
        async let running: Void = central.run()
        let event = try await events.next { _ in true }
        guard case .unavailable(let detail) = event else {
            Issue.record("\(event)")
            return
        }
        #expect(detail.contains(first.address) && detail.contains("is the message bus running?"))
        await #expect(throws: BluetoothError.self) { try await central.connect(Stage.peripheral, timeout: .seconds(1)) }
        let second = try first.restarted()
        let fake = try await FakeBlueZ(second.address)
        try await events.expect(.available)
        await central.close()
        await running
        await fake.crash()
    }

    @Test func `too many unanswered calls renew the connection`() async throws {
        var limits = Self.quick
        limits.unansweredCalls = 3
        try await Stage.run(limits: limits) { stage in
            let characteristic = try await stage.connected()
            await stage.fake.hang("ReadValue")
            for number in 1...3 {
                #expect(!stage.events.seen.contains { if case .unavailable = $0 { true } else { false } })
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try? await stage.central.read(characteristic) }
                    await stage.fake.waitForCall("ReadValue", times: number)
                    group.cancelAll()
                }
            }
            try await stage.events.next { if case .unavailable = $0 { true } else { false } }
            try await stage.events.expect(.available)
        }
    }

    @Test func `calls that fail together are logged once as the reason for a new connection`() async throws {
        var limits = Self.quick
        limits.unansweredCalls = 3
        let warnings = Locked(0)
        let log = Log(threshold: .warning) { _ in warnings.withLock { $0 += 1 } }
        try await Stage.run(limits: limits, log: log) { stage in
            let characteristic = try await stage.connected()
            await stage.fake.hang("ReadValue")
            await withTaskGroup(of: Void.self) { group in
                for _ in 1...6 { group.addTask { _ = try? await stage.central.read(characteristic) } }
                await stage.fake.waitForCall("ReadValue", times: 6)
                group.cancelAll()
            }
            try await stage.events.next { if case .unavailable = $0 { true } else { false } }
            try await stage.events.expect(.available)
        }
        #expect(warnings.withLock { $0 } == 1)
    }

    @Test
    func `a bluetoothd that hangs without pending calls is detected, and a silent one is not reported`() async throws {
        var limits = Self.quick
        limits.livenessInterval = .milliseconds(20)
        limits.operation = .milliseconds(200)
        try await Stage.run(limits: limits) { stage in
            await stage.fake.waitForCall("Ping", times: 3)
            #expect(!stage.events.hasLostBlueZ)
            await stage.fake.hang("Ping")
            try await stage.events.next { if case .unavailable = $0 { true } else { false } }
            try await stage.events.expect(.available)
        }
    }

    @Test func `the loss of the bus is published once, and all objects again afterwards`() async throws {
        try await Stage.run(limits: Self.quick) { stage in
            await stage.bus.kill()
            try await stage.events.next { if case .unavailable = $0 { true } else { false } }
            let bus = try stage.bus.restarted()
            let fake = try await FakeBlueZ(bus.address)
            try await stage.events.expect(.available)
            try await stage.events.next { if case .peripheralChanged = $0 { true } else { false } }
            await stage.central.close()
            await fake.crash()
        }
    }

    @Test func `bluetoothd may start late, stop and start again`() async throws {
        let bus = try PrivateBus()
        let central = BlueZCentral(bus: .address(bus.address), log: .silent)
        let events = EventReader(central.events)
        async let running: Void = central.run()
        for _ in 0..<3 {
            let event = try await events.next { if case .unavailable = $0 { true } else { false } }
            guard case .unavailable(let detail) = event, detail.contains("systemctl start bluetooth") else {
                Issue.record("\(event)")
                return
            }
            let fake = try await FakeBlueZ(bus.address)
            try await events.expect(.available)
            await fake.crash()
        }
        await central.close()
        await running
    }

    @Test func `the loss of bluetoothd fails waiting operations, and replaces a report for each link`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            try await stage.subscribe(characteristic)
            await stage.fake.hang("ReadValue")
            async let reading = outcome { () throws(BluetoothError) in try await stage.central.read(characteristic) }
            await stage.fake.waitForCall("ReadValue")
            await stage.fake.crash()
            #expect(await reading.kind == .serviceUnavailable)
            try await stage.events.next { if case .unavailable = $0 { true } else { false } }
            #expect(!stage.events.seen.contains(.disconnected(Stage.peripheral)))
            let second = await outcome { () throws(BluetoothError) in try await stage.central.read(characteristic) }
            #expect(second.kind == .serviceUnavailable)
        }
    }

    @Test func `a failed list of objects is requested again`() async throws {
        let bus = try PrivateBus()
        let fake = try await FakeBlueZ(bus.address)
        await fake.fail("GetManagedObjects", "Failed", "not now")
        let central = BlueZCentral(bus: .address(bus.address), limits: Self.quick, log: .silent)
        let events = EventReader(central.events)
        async let running: Void = central.run()
        let event = try await events.next { _ in true }
        guard case .unavailable(let detail) = event else {
            Issue.record("\(event)")
            return
        }
        #expect(detail.contains("not now"))
        await fake.on("GetManagedObjects") { _, call in
            try call.reply(.dictionary(key: "o", value: "a{sa{sv}}", []))
        }
        try await events.expect(.available)
        await central.close()
        await running
        await fake.crash()
    }

    @Test func `the bus is found again after a loss during the list of objects`() async throws {
        let first = try PrivateBus()
        let refusing = try await FakeBlueZ(first.address)
        await refusing.fail("GetManagedObjects", "Failed", "not now")
        let central = BlueZCentral(bus: .address(first.address), limits: Self.quick, log: .silent)
        let events = EventReader(central.events)
        async let running: Void = central.run()
        try await events.next { if case .unavailable = $0 { true } else { false } }
        await first.kill()
        let second = try first.restarted()
        let fake = try await FakeBlueZ(second.address)
        try await events.expect(.available)
        await central.close()
        await running
        await fake.crash()
    }

    @Test func `a cancelled run ends while bluetoothd does not list its objects`() async throws {
        let bus = try PrivateBus()
        let fake = try await FakeBlueZ(bus.address)
        await fake.fail("GetManagedObjects", "Failed", "not now")
        let central = BlueZCentral(bus: .address(bus.address), limits: Self.quick, log: .silent)
        let events = EventReader(central.events)
        let running = Task { await central.run() }
        try await events.next { if case .unavailable = $0 { true } else { false } }
        running.cancel()
        await running.value
        await fake.crash()
    }

    @Test func `signals that come right after the objects are not lost`() async throws {
        let bus = try PrivateBus()
        let fake = try await FakeBlueZ(bus.address, isEmpty: true)
        await fake.on("GetManagedObjects") { fake, call in
            try call.reply(.dictionary(key: "o", value: "a{sa{sv}}", []))
            fake.add(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Address": .string("00:00:5E:00:53:01")])
            fake.add(FakeBlueZ.device, "org.bluez.Device1", ["Address": .string("C0:FF:EE:00:00:01")])
            fake.setDevice(["RSSI": .int16(-1)])
        }
        let central = BlueZCentral(bus: .address(bus.address), log: .silent)
        let events = EventReader(central.events)
        async let running: Void = central.run()
        var status = PeripheralStatus(id: Stage.peripheral)
        status.rssi = -1
        status.heard = 1
        try await events.expect(.peripheralChanged(status))
        await central.close()
        await running
        await fake.crash()
    }

    @Test func `signals of other senders are ignored`() async throws {
        try await Stage.run { stage in
            let stranger = try await FakeStranger(stage.bus.address)
            try await stranger.claim(FakeBlueZ.device)
            await stage.fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Discovering": .boolean(true)])
            try await stage.events.next { event in
                if case .adapterChanged(let status) = event { status.isDiscovering } else { false }
            }
            let heard = stage.events.seen.compactMap { event in
                if case .peripheralChanged(let status) = event { status.rssi } else { nil }
            }
            #expect(heard == [-60])
            await stranger.leave()
        }
    }

    @Test func `closing ends the events`() async throws {
        try await Stage.run { stage in
            await stage.central.close()
            _ = await stage.events.rest()
            await #expect(throws: BluetoothError.self) {
                try await stage.central.startDiscovery(on: Stage.adapter)
            }
        }
    }
}

/// A process that sends signals of BlueZ's objects without being BlueZ.
private actor FakeStranger {
    private let connection: DBusConnection
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe connection.unownedExecutor }

    init(_ address: String) async throws {
        connection = try await .open(.address(address), on: EventLoop(name: "stranger"))
    }

    /// Sends to each client by its unique name, so that no match rule filters the signal.
    func claim(_ path: String) async throws {
        let bus = "org.freedesktop.DBus"
        let names = try await connection.call(bus, "/", bus, "ListNames", timeout: .seconds(20)).first?.strings ?? []
        let properties = DBusValue.properties(["RSSI": .int16(-1)])
        let arguments: [DBusValue] = [.string("org.bluez.Device1"), properties, .strings([])]
        for name in names where name.hasPrefix(":") {
            try connection.emit(path, "org.freedesktop.DBus.Properties", "PropertiesChanged", arguments, to: name)
        }
        _ = try await connection.nameOwner("org.bluez")
    }

    func leave() async {
        await connection.close()
        connection.loop.stop()
    }
}
