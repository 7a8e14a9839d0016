import BlueZKit
import GattherdDBus
import TestKit
import Testing

/// The creation, removal and paths of objects.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ObjectTests {
    private static let beacon = Neighbourhood.Entry(
        "custom",
        "beacon",
        "advertise: {interval: 50ms, connectable: false, flags: false, service_data: {fcd2: '40 01 64'}}"
    )

    @Test func `a beacon is known only during a scan`() async throws {
        try await Scene.play(Self.beacon, .strap()) { scene in
            let (beacon, strap) = (scene.device("beacon"), scene.device("strap"))
            try await scene.client.adapter.startDiscovery()
            try await eventually { try await beacon.isThere() }
            try await eventually { try await strap.isThere() }
            try await scene.client.adapter.stopDiscovery()
            try await eventually { try await !beacon.isThere() }
            #expect(try await strap.isThere())
        }
    }

    @Test func `a device without advertised Flags is found only with a filter`() async throws {
        try await Scene.play(Self.beacon, .strap("strap", "rate: 0, advertise: {interval: 1s}")) { scene in
            let (beacon, strap) = (scene.device("beacon"), scene.device("strap"))
            try await scene.client.adapter.call("StartDiscovery")
            try await eventually { try await strap.isThere() }
            #expect(try await !beacon.isThere())
            try await scene.client.adapter.call("SetDiscoveryFilter", .properties(["Transport": .string("le")]))
            try await eventually { try await beacon.isThere() }
        }
    }

    @Test func `a scan continues while another client scans, and its end invalidates the signal strengths`()
        async throws
    {
        try await Scene.play(.strap()) { scene in
            let strap = scene.device("strap")
            let other = try await scene.newcomer()
            try await other.adapter.startDiscovery()
            try await strap.find()
            #expect(try await scene.client.adapter.isTrue("Discovering"))
            scene.client.forget()
            try await other.adapter.stopDiscovery()
            try await eventually { try await !scene.client.adapter.isTrue("Discovering") }
            try await scene.client.see { diary in
                diary.contains {
                    if case .changed(strap.path, _, _, let invalidated) = $0 { invalidated == ["RSSI"] } else { false }
                }
            }
            await other.leave()
        }
    }

    @Test func `a table change affects paths and UUIDs, but not ServicesResolved`() async throws {
        try await Scene.play(.strap("strap", "rate: 0, battery: 50")) { scene in
            let strap = scene.device("strap")
            try await strap.findAndConnect()
            let before = try await strap.characteristic("2a37").path
            scene.client.forget()
            try await scene.order("change-services", "strap", "180f")
            try await eventually { (try? await strap.characteristic("2a37").path) ?? before != before }
            let diary = try await scene.client.see { !$0.values("UUIDs", of: strap.path).isEmpty }
            let uuids = diary.values("UUIDs", of: strap.path).last?.strings ?? []
            #expect(uuids.contains { $0.hasPrefix("0000180d") })
            #expect(!uuids.contains { $0.hasPrefix("0000180f") })
            let rate = try await strap.characteristic("2a37")
            try await scene.client.see { diary in
                // In either order: bluetoothd signals new objects when it is idle.
                diary.contains { if case .added(rate.path, _) = $0 { true } else { false } }
                    && diary.contains { if case .removed(before, _) = $0 { true } else { false } }
            }
            #expect(diary.values("ServicesResolved", of: strap.path) == [])
            #expect(try await strap.isTrue("ServicesResolved"))
            try await rate.call("StartNotify")
            try await scene.order("burst", "strap", "1")
            try await scene.client.see { !$0.octets(of: rate.path).isEmpty }
        }
    }
}
