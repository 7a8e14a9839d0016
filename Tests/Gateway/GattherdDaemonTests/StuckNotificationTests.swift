import GattherdBluetooth
import GattherdDaemon
import GattherdModel
import GattherdSimulator
import GattherdSync
import Testing

/// Streams with sockets whose characteristics bluetoothd reserves because of an earlier request.
@Suite(.timeLimit(.minutes(2))) struct StuckNotificationTests {
    private static let stuck = BluetoothError(.notificationsStuck, "stuck until bluetoothd restarts")

    /// Returns a bench whose device has one stream with a socket that is stuck.
    private func bench(isRequired: Bool = true) throws -> Bench {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB, isRequired: isRequired)
        profile.characteristics[0].prefersSocket = true
        let bench = try Bench([profile])
        bench.central.state.withLock { $0.refusedSubscription = Self.stuck }
        return bench
    }

    @Test func `the device is removed from BlueZ, then served by signals, and on the next link by a socket`()
        async throws
    {
        let bench = try bench()
        try await bench.run {
            bench.powerOn()
            await bench.central.wait(for: .forget)
            bench.central.state.withLock { $0.refusedSubscription = nil }
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.tell.yield(.disconnected(bench.id))
            await bench.announcer.wait(for: "strap", .ready, times: 2)
        }
        #expect(bench.announcer.statuses.state["strap"]?.contains(.failed) == false)
        #expect(await bench.store.events.contains { $0.detail.contains("gattherd removes it") })
        let paths = bench.central.state.withLock { $0.paths }
        #expect(paths.first == .socket && paths.last == .socket)
        #expect(Set(paths.dropFirst().dropLast()) == [.signals])
    }

    @Test(arguments: [true, false])
    func `a device with a bond is served without the stream, and the report has the remedy`(
        isRequired: Bool
    ) async throws {
        let bench = try bench(isRequired: isRequired)
        try await bench.run {
            bench.powerOn(isPaired: true)
            await bench.announcer.wait(for: "strap", .ready)
        }
        #expect(!bench.central.calls.state.contains(.forget))
        #expect(await bench.store.events.contains { $0.detail.contains("stuck until bluetoothd restarts") })
    }

    @Test func `a bond that BlueZ has not reported yet is not removed`() async throws {
        let bench = try bench()
        var bond = Bond(peripheral: bench.id)
        bond.isPaired = true
        bench.central.state.withLock { [bond] in $0.bonds = [bond] }
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .backingOff, times: 2)
        }
        #expect(!bench.central.calls.state.contains(.forget))
    }

    @Test func `a stream recovers after the end of a link has interrupted its request for a socket`() async throws {
        var setup = SimulatedSupervisor.Setup(devices: 1)
        setup.profile.characteristics[0].prefersSocket = true
        try await SimulatedSupervisor.run(setup) { world in
            try await world.recover {
                let failure = SimulatorOrder.failNext(
                    target: "strap-1",
                    method: "AcquireNotify",
                    error: "no-reply",
                    times: 1
                )
                try await world.order(failure)
                try await world.order(.drop("strap-1"))
                await world.wait { world.supervisor.status.link(of: "strap-1")?.state == .preparing }
                try await world.order(.drop("strap-1"))
            }
            await world.store.wait { store in
                store.events.contains { $0.detail.contains("gattherd removes it") }
            }
        }
    }
}
