import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdSync
import Testing

@testable import GattherdBlueZ

/// The client library's use of BlueZ beyond the daemon's.
@Suite(.timeLimit(.minutes(3))) struct ClientPortTests {
    private static let id = Stage.peripheral
    private static let description = FakeBlueZ.measurement + "/desc000d"

    // MARK: - Advertisements

    @Test func `an advertisement is published with all its data`() async throws {
        try await Stage.run { stage in
            await stage.fake.setDevice([
                "RSSI": .int16(-71), "TxPower": .int16(4), "Appearance": .uint16(833),
                "AdvertisingFlags": .bytes([6]),
                "ManufacturerData": .dictionary(
                    key: "q",
                    value: "v",
                    [DBusEntry(.uint16(0x004C), .variant(.bytes([2, 21])))]
                ),
                "ServiceData": .dictionary(
                    key: "s",
                    value: "v",
                    [DBusEntry(.string("0000180f-0000-1000-8000-00805f9b34fb"), .variant(.bytes([100])))]
                ),
            ])
            let event = try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.heard == 1 } else { false }
            }
            guard case .peripheralChanged(let status) = event else { return }
            var expected = AdvertisementData()
            expected.manufacturerData = [0x004C: [2, 21]]
            expected.serviceData = [0x180F: [100]]
            expected.txPower = 4
            expected.appearance = 833
            expected.flags = 6
            #expect(status.advertisement == expected)
            #expect(status.rssi == -71)
        }
    }

    @Test func `a repeated advertisement is published again, an answer to a call is not`() async throws {
        try await Stage.run { stage in
            await stage.fake.setDevice(["RSSI": .int16(-71)])
            await stage.fake.setDevice(["RSSI": .int16(-71)])
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.heard == 2 } else { false }
            }
            #expect(try await stage.central.rssi(of: Self.id) == -71)
            await stage.fake.setDevice(["Name": .string("other")])
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event {
                    status.name == "other" && status.heard == 2
                } else {
                    false
                }
            }
        }
    }

    @Test func `a scan may ask for every advertisement`() async throws {
        try await Stage.run { stage in
            let filter = DiscoveryFilter(reportsDuplicates: true)
            try await stage.central.startDiscovery(on: Stage.adapter, filter: filter)
            let asked = await stage.fake.arguments["SetDiscoveryFilter"]?.first
            #expect(asked?["DuplicateData"] == .boolean(true))
        }
    }

    // MARK: - The table and the link

    private func addDescriptor(_ stage: Stage) async {
        let properties: FakeBlueZ.Properties = [
            "UUID": .string("00002901-0000-1000-8000-00805f9b34fb"),
            "Characteristic": .objectPath(FakeBlueZ.measurement),
        ]
        await stage.fake.add(Self.description, "org.bluez.GattDescriptor1", properties)
    }

    @Test func `the table has services, characteristics and descriptors`() async throws {
        try await Stage.run { stage in
            _ = try await stage.connected()
            await addDescriptor(stage)
            let services = try await stage.central.services(of: Self.id, timeout: .seconds(20))
            #expect(services.map(\.uuid) == [0x180D])
            #expect(services.map(\.isPrimary) == [true])
            #expect(services.flatMap(\.characteristics).map(\.uuid) == [Stage.measurement, Stage.control])
            #expect(services.flatMap(\.descriptors).map(\.uuid) == [0x2901])
            #expect(services.flatMap(\.descriptors).map(\.characteristic.uuid) == [Stage.measurement])
        }
    }

    @Test func `a descriptor can be read and written until it is removed`() async throws {
        try await Stage.run { stage in
            _ = try await stage.connected()
            await addDescriptor(stage)
            let services = try await stage.central.services(of: Self.id, timeout: .seconds(20))
            let descriptor = try #require(services.flatMap(\.descriptors).first)
            #expect(try await stage.central.read(descriptor) == [1, 2, 3])
            try await stage.central.write([7], to: descriptor)
            #expect(await stage.fake.arguments["WriteValue"]?.first == .bytes([7]))
            await stage.fake.remove(Self.description)
            await stage.fake.makeRoundTrip()
            let central = stage.central
            let gone = await outcome { () throws(BluetoothError) in try await central.read(descriptor) }
            #expect(gone.kind == .unknownAttribute)
        }
    }

    @Test func `the MTU is known, the signal strength only while a scan receives the peripheral`() async throws {
        try await Stage.run { stage in
            _ = try await stage.connected()
            #expect(try await stage.central.mtu(of: Self.id) == 23)
            #expect(try await stage.central.rssi(of: Self.id) == -60)
            await stage.fake.setDevice([:], invalidated: ["RSSI"])
            let central = stage.central
            let unheard = await outcome { () throws(BluetoothError) in try await central.rssi(of: Self.id) }
            #expect(unheard.kind == .notSupported)
        }
    }

    @Test func `an error has BlueZ's name and message`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.fail("ReadValue", "Failed", "Operation failed with ATT error: 0x80")
            let central = stage.central
            do throws(BluetoothError) {
                _ = try await central.read(characteristic)
                Issue.record("read")
            } catch {
                let message = "Operation failed with ATT error: 0x80"
                #expect(error.original == .init(name: "org.bluez.Error.Failed", message: message))
            }
        }
    }

    // MARK: - Why a link ended

    /// The reason of a link's end, all signals of which arrive at once.
    private func reason(after end: (FakeBlueZ) async throws -> Void) async throws -> DisconnectReason? {
        let loop = EventLoop(name: "test")
        defer { loop.stop() }
        var reason: DisconnectReason?
        try await Stage.run(loop: loop) { stage in
            reason = try await self.reason(stage, on: loop, after: end)
        }
        return reason
    }

    private func reason(
        _ stage: Stage,
        on loop: EventLoop,
        after end: (FakeBlueZ) async throws -> Void
    ) async throws -> DisconnectReason? {
        _ = try await stage.connected()
        try await loop.standStill {
            try await end(stage.fake)
            await stage.fake.makeRoundTrip()
        }
        try await stage.events.expect(.disconnected(Self.id))
        let event = try await stage.events.next { if case .linkEnded = $0 { true } else { false } }
        guard case .linkEnded(Self.id, let reason) = event else { return nil }
        return reason
    }

    @Test(arguments: [
        ("Timeout", DisconnectReason.timedOut), ("Local", .local), ("Remote", .remote),
        ("Authentication", .authentication), ("Suspend", .suspended), ("Unknown", .unknown), ("Odd", .unknown),
    ])
    func `the end of a link has the reason that BlueZ signals, before or after the end`(
        word: String,
        expected: DisconnectReason
    ) async throws {
        let before = try await reason { fake in
            await fake.explainEnd("org.bluez.Reason." + word)
            await fake.setConnected(false)
        }
        #expect(before == expected)
        let after = try await reason { fake in
            await fake.setConnected(false)
            await fake.explainEnd("org.bluez.Reason." + word)
        }
        #expect(after == expected)
    }

    @Test func `without a reason the peripheral ended the link, unless the adapter is off`() async throws {
        let silent = try await reason { fake in await fake.setConnected(false) }
        #expect(silent == .remote)
        let poweredOff = try await reason { fake in
            await fake.setConnected(false)
            await fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .boolean(false)])
        }
        #expect(poweredOff == .adapterPoweredOff)
    }

    @Test func `the reason of a removed peripheral's end is its removal`() async throws {
        let vanished = try await reason { fake in await fake.remove(FakeBlueZ.device) }
        #expect(vanished == .vanished)
        let adapterLost = try await reason { fake in await fake.remove(FakeBlueZ.adapter) }
        #expect(adapterLost == .adapterLost)
    }

    // MARK: - Adapters

    @Test func `an adapter that rfkill holds is blocked`() async throws {
        try await Stage.run { stage in
            let properties: FakeBlueZ.Properties = [
                "Powered": .boolean(false), "PowerState": .string("off-blocked"),
            ]
            await stage.fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", properties)
            try await stage.events.next { event in
                if case .adapterChanged(let status) = event { status.isBlocked && !status.isPowered } else { false }
            }
        }
    }

    @Test func `denied access to bluetoothd is published`() async throws {
        var limits = BlueZCentral.Limits()
        limits.retry = .milliseconds(1)...(.milliseconds(20))
        try await Stage.run(limits: limits) { stage in
            await stage.fake.on("GetManagedObjects") { _, call in
                try call.fail(DBusError(name: "org.freedesktop.DBus.Error.AccessDenied", message: "not you"))
            }
            try await stage.fake.connection.releaseName("org.bluez")
            try await stage.fake.connection.requestName("org.bluez")
            try await stage.events.expect(.accessDenied(detail: "not you"))
        }
    }
}
