import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdBlueZ

/// Advertisements that bluetoothd reports without a scan.
@Suite(.timeLimit(.minutes(1))) struct MonitorTests {
    private final class Sink: AdvertisementSink {
        let heard = LatestValue<[HeardAdvertisement]>([])
        let flushes = LatestValue(0)

        func receive(_ advertisement: HeardAdvertisement, at time: Timestamp) {
            heard.update { $0.append(advertisement) }
        }

        func flush() {
            flushes.update { $0 += 1 }
        }
    }

    private static let manager = "org.bluez.AdvertisementMonitorManager1"
    private static let otherAdapter: FakeBlueZ.Properties = [
        "Address": .string("00:00:5E:00:53:02"), "Powered": .boolean(true), "Discovering": .boolean(false),
    ]
    private let sink = Sink()
    /// Our central's name on the bus, and the path that it has registered.
    private let registered = LatestValue<[String]>([])

    private func wishes(hasChangingPayloads: Bool = true) -> AdvertisementWatch {
        AdvertisementWatch(
            addresses: [Stage.peripheral.address],
            sources: [
                .manufacturer(0x0499), .serviceData(0xFCD2), .serviceData(0x1234_5678),
                .serviceData(0x7a4b_bfe6_999f_4717_b63a_066e_0697_1f59),
            ],
            hasChangingPayloads: hasChangingPayloads,
            sink: sink
        )
    }

    private func teach(_ fake: FakeBlueZ) async {
        await fake.on("RegisterMonitor") { [registered] _, call in
            let path = try call.arguments().first?.string ?? ""
            registered.update { $0 += [call.sender, path] }
            try call.reply()
        }
        await fake.on("UnregisterMonitor") { _, call in try call.reply() }
        await fake.add(FakeBlueZ.adapter, Self.manager, ["SupportedMonitorTypes": .strings(["or_patterns"])])
    }

    /// Calls the registered monitor, as bluetoothd does.
    private func ask(
        _ fake: FakeBlueZ,
        _ below: String,
        _ interface: String,
        _ member: String
    ) async throws -> [DBusValue] {
        for await registered in registered.watch() where !registered.isEmpty { break }
        let (client, path) = (registered.state[0], registered.state[1] + below)
        return try await fake.connection.call(client, path, interface, member, timeout: .seconds(20))
    }

    private func status(isMonitoring: Bool) -> CentralEvent {
        var status = AdapterStatus(address: Stage.adapter, name: "hci0", isPowered: true, isDiscovering: false)
        status.isMonitoring = isMonitoring
        return .adapterChanged(status)
    }

    @Test func `a monitor of all patterns is registered, and Activate starts the monitoring`()
        async throws
    {
        try await Stage.run { stage in
            await stage.central.watch(wishes())
            await teach(stage.fake)
            let objects = try await ask(stage.fake, "", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
            let monitor = try #require(objects.first?.entries?.first?.value["org.bluez.AdvertisementMonitor1"])
            let patterns = "\(try #require(monitor["Patterns"]))"
            #expect(monitor["Type"]?.string == "or_patterns")
            for octets in [
                "[153, 4]", "[210, 252]", "[120, 86, 52, 18]",
                "[89, 31, 151, 6, 110, 6, 58, 182, 23, 71, 159, 153, 230, 191, 75, 122]",
            ] {
                #expect(patterns.contains(octets), "\(patterns)")
            }
            _ = try await ask(stage.fake, "/0", "org.bluez.AdvertisementMonitor1", "Activate")
            try await stage.events.expect(status(isMonitoring: true))
            _ = try await ask(stage.fake, "/0", "org.bluez.AdvertisementMonitor1", "Release")
            try await stage.events.expect(status(isMonitoring: false))
        }
    }

    @Test func `monitors are registered again with a new bluetoothd`() async throws {
        try await Stage.run { stage in
            await stage.central.watch(wishes())
            await teach(stage.fake)
            _ = try await ask(stage.fake, "/0", "org.bluez.AdvertisementMonitor1", "Activate")
            try await stage.events.expect(status(isMonitoring: true))
            try await stage.fake.connection.releaseName("org.bluez")
            try await stage.fake.connection.requestName("org.bluez")
            try await stage.events.expect(status(isMonitoring: false))
            await stage.fake.waitForCall("RegisterMonitor", times: 2)
            _ = try await ask(stage.fake, "/0", "org.bluez.AdvertisementMonitor1", "Activate")
            try await stage.events.expect(status(isMonitoring: true))
        }
    }

    @Test func `an adapter that comes while the watch is replaced has the new patterns`() async throws {
        try await Stage.run { stage in
            await stage.central.watch(wishes())
            await teach(stage.fake)
            for await registered in registered.watch() where registered.count == 2 { break }
            await stage.fake.hang("UnregisterMonitor")
            let (central, sink) = (stage.central, sink)
            async let replaced: Void = central.watch(
                AdvertisementWatch(
                    addresses: [Stage.peripheral.address],
                    sources: [.manufacturer(0x0102)],
                    hasChangingPayloads: true,
                    sink: sink
                )
            )
            await stage.fake.waitForCall("UnregisterMonitor")
            let other = "/org/bluez/hci1"
            await stage.fake.add(other, "org.bluez.Adapter1", Self.otherAdapter)
            await stage.fake.add(other, Self.manager, ["SupportedMonitorTypes": .strings(["or_patterns"])])
            for await registered in registered.watch() where registered.count == 4 { break }
            let (client, path) = (registered.state[2], registered.state[3])
            let interface = "org.freedesktop.DBus.ObjectManager"
            let connection = stage.fake.connection
            let objects = try await connection.call(client, path, interface, "GetManagedObjects", timeout: .seconds(20))
            #expect("\(objects)".contains("[2, 1]"), "\(objects)")
            try await stage.fake.release()
            await replaced
        }
    }

    @Test func `devices that repeat one payload need a scan, as a monitor omits repetitions`() async throws {
        try await Stage.run { stage in
            await teach(stage.fake)
            await stage.central.watch(wishes(hasChangingPayloads: false))
            await stage.fake.makeRoundTrip()
            #expect(await !stage.fake.asked.contains("RegisterMonitor"))
        }
    }

    @Test func `only advertisements of watched peripherals are delivered`() async throws {
        try await Stage.run { stage in
            await stage.central.watch(wishes())
            await stage.fake.setDevice(["RSSI": .int16(-50)])
            for await heard in sink.heard.watch() where !heard.isEmpty { break }
            await stage.central.watch(AdvertisementWatch(addresses: [], sources: [], sink: sink))
            await stage.fake.setDevice(["RSSI": .int16(-51)])
            try await stage.events.next { event in
                if case .peripheralChanged(let status) = event { status.rssi == -51 } else { false }
            }
            #expect(sink.heard.state.map(\.rssi) == [-50])
            #expect(sink.heard.state.map(\.name) == ["strap"])
        }
    }

    @Test func `a sink passes its last advertisements on before another one replaces it`() async throws {
        try await Stage.run { stage in
            await stage.central.watch(wishes())
            let before = sink.flushes.state
            await stage.central.watch(AdvertisementWatch(addresses: [], sources: [], sink: Sink()))
            #expect(sink.flushes.state > before)
        }
    }

    @Test func `advertisements are read together while many come one by one`() async throws {
        try await Stage.run { stage in
            var strength: Int16 = -40
            try await eventually {
                strength = strength == -40 ? -41 : -40
                await stage.fake.setDevice(["RSSI": .int16(strength)])
                try await stage.events.next { if case .peripheralChanged = $0 { true } else { false } }
                return await stage.central.isReadingPaused
            }
        }
    }

    @Test func `an advertisement may be read a little later, and other changes of a device may not`() {
        func mayWait(_ properties: KeyValuePairs<String, DBusValue>, _ invalidated: [String] = []) -> Bool {
            PropertyChanges(changed: .properties(properties), invalidated: invalidated).areOfAdvertisementOnly
        }
        #expect(mayWait(["RSSI": .int16(-60)]))
        #expect(mayWait(["RSSI": .int16(-60), "TxPower": .int16(4), "ServiceData": .properties([:])]))
        #expect(!mayWait(["RSSI": .int16(-60), "Connected": .boolean(true)]))
        #expect(!mayWait(["RSSI": .int16(-60), "ServicesResolved": .boolean(true)]))
        #expect(!mayWait(["Connected": .boolean(false)]))
        #expect(!mayWait(["RSSI": .int16(-60)], ["Name"]))
        #expect(!mayWait([:], ["RSSI"]))
    }
}
