import GattherdDaemon
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSimulator
import Testing

/// More devices than slots of an adapter, and links left by a crash of bluetoothd.
@Suite(.timeLimit(.minutes(2))) struct CrowdTests {
    private var crowded: SimulatedSupervisor.Setup {
        var setup = SimulatedSupervisor.Setup()
        setup.adapters = "[{name: hci0, address: '00:00:5E:00:53:00', slots: 3}]"
        setup.devices = 4
        setup.ready = 3
        return setup
    }

    @Test func `a device without a free slot has the reason in its status and an event`() async throws {
        try await SimulatedSupervisor.run(crowded) { world in
            await world.wait { world.supervisor.status.links.contains { $0.reason == .adapterFull } }
            let status = try #require(world.supervisor.status.links.first { $0.reason == .adapterFull })
            #expect(status.detail == "adapter hci0 holds 3 of 3 links; waits for a free slot")
            await world.store.wait { store in
                store.events.contains { $0.kind == "adapter" && $0.detail.contains(#""state":"full""#) }
            }
        }
    }

    @Test func `devices take turns if rotation is configured`() async throws {
        var setup = crowded
        setup.rotation = .milliseconds(300)
        try await SimulatedSupervisor.run(setup) { world in
            await world.wait { world.names.allSatisfy { world.readyCount($0) > 0 } }
            #expect(world.supervisor.status.links.contains { $0.reason == .rotated || $0.reason == .adapterFull })
        }
    }

    @Test func `links left by a crash are waited for, and a lasting one is adopted`() async throws {
        try await SimulatedSupervisor.run { world in
            try await world.order(.keepLink("strap-1"))
            try await world.order(.restartDaemon(isGraceful: false, downtime: .milliseconds(50)))
            await world.wait { world.names.allSatisfy { world.readyCount($0) == 2 } }
            let events = await world.store.events
            #expect(!events.contains { $0.detail.contains("backingOff") })
        }
    }
}
