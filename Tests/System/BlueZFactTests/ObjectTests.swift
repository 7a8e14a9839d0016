import BlueZKit
import GattherdDBus
import TestKit
import Testing

/// The creation, removal and paths of objects.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ObjectTests {
    private static let beacon = TestPeripherals.Entry(
        "custom",
        "beacon",
        "advertise: {interval: 50ms, connectable: false, flags: false, service_data: {fcd2: '40 01 64'}}"
    )

    @Test func `a beacon is known only during a scan`() async throws {
        try await BlueZFixture.run(Self.beacon, .strap()) { fixture in
            let (beacon, strap) = (fixture.device("beacon"), fixture.device("strap"))
            try await fixture.client.adapter.startDiscovery()
            try await eventually { try await beacon.exists() }
            try await eventually { try await strap.exists() }
            try await fixture.client.adapter.stopDiscovery()
            try await eventually { try await !beacon.exists() }
            #expect(try await strap.exists())
        }
    }

    @Test func `a device without advertised Flags is found only with a filter`() async throws {
        try await BlueZFixture.run(Self.beacon, .strap("strap", "rate: 0, advertise: {interval: 1s}")) { fixture in
            let (beacon, strap) = (fixture.device("beacon"), fixture.device("strap"))
            try await fixture.client.adapter.call("StartDiscovery")
            try await eventually { try await strap.exists() }
            #expect(try await !beacon.exists())
            try await fixture.client.adapter.call("SetDiscoveryFilter", .properties(["Transport": .string("le")]))
            try await eventually { try await beacon.exists() }
        }
    }

    @Test func `a scan continues while another client scans, and its end invalidates the signal strengths`()
        async throws
    {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            let other = try await fixture.anotherClient()
            try await other.adapter.startDiscovery()
            try await strap.find()
            #expect(try await fixture.client.adapter.isTrue("Discovering"))
            fixture.client.removeEvents()
            try await other.adapter.stopDiscovery()
            try await eventually { try await !fixture.client.adapter.isTrue("Discovering") }
            try await fixture.client.waitForEvents { events in
                events.contains {
                    if case .changed(strap.path, _, _, let invalidated) = $0 { invalidated == ["RSSI"] } else { false }
                }
            }
            await other.leave()
        }
    }

    @Test func `a table change affects paths and UUIDs, but not ServicesResolved`() async throws {
        try await BlueZFixture.run(.strap("strap", "rate: 0, battery: 50")) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let before = try await strap.characteristic("2a37").path
            fixture.client.removeEvents()
            try await fixture.order("change-services", "strap", "180f")
            try await eventually { (try? await strap.characteristic("2a37").path) ?? before != before }
            let events = try await fixture.client.waitForEvents { !$0.values("UUIDs", of: strap.path).isEmpty }
            let uuids = events.values("UUIDs", of: strap.path).last?.strings ?? []
            #expect(uuids.contains { $0.hasPrefix("0000180d") })
            #expect(!uuids.contains { $0.hasPrefix("0000180f") })
            let rate = try await strap.characteristic("2a37")
            try await fixture.client.waitForEvents { events in
                // In either order: bluetoothd signals new objects when it is idle.
                events.contains { if case .added(rate.path, _) = $0 { true } else { false } }
                    && events.contains { if case .removed(before, _) = $0 { true } else { false } }
            }
            #expect(events.values("ServicesResolved", of: strap.path) == [])
            #expect(try await strap.isTrue("ServicesResolved"))
            try await rate.call("StartNotify")
            try await fixture.order("burst", "strap", "1")
            try await fixture.client.waitForEvents { !$0.octets(of: rate.path).isEmpty }
        }
    }
}
