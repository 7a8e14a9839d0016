import GattherdModel
import Testing

@testable import GattherdMachines

/// A bluetoothd that crashes, in virtual time: its successor shows links that the kernel is about to drop.
@Suite struct CrashTests {
    private func crashed(devices: Int, survivors: Int, seed: UInt64) throws -> SupervisorWorld {
        var world = try SupervisorWorld(devices: devices, seed: seed)
        world.start()
        world.run(for: .seconds(100))
        for name in world.names.prefix(survivors) { world.peripherals[name]?.outlivesCrash = true }
        world.killDaemon()
        world.run(for: .milliseconds(500))
        world.restartDaemon()
        return world
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `links dropped right after a crash are not failures, and all devices are ready soon`(seed: UInt64) throws {
        var world = try crashed(devices: 4, survivors: 0, seed: seed)
        let attempts = world.connectCount
        let time = world.run(for: .seconds(60), until: \.isIdle)
        #expect(try #require(time) < .seconds(4))
        for name in world.names {
            #expect(world.connectCount[name, default: 0] == attempts[name, default: 0] + 1)
            #expect(world.changes[name]?.contains { $0.to == .backingOff } == false)
        }
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `a link that outlives the crash is used`() throws {
        var world = try crashed(devices: 4, survivors: 1, seed: 1)
        let time = world.run(for: .seconds(60)) { $0.state("d1") == .ready }
        #expect(try #require(time) < .milliseconds(3500))
        #expect(world.changes["d1"]?.contains { $0.to == .backingOff } == false)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `pauses from before the crash do not delay any device`() throws {
        var world = try SupervisorWorld(devices: 2, seed: 1)
        world.peripherals["d1"]?.fault = .abortsConnect
        world.start()
        world.run(for: .seconds(600))
        #expect((world.changes["d1"]?.last?.attempt ?? 0) > 5)
        world.killDaemon()
        world.run(for: .milliseconds(500))
        world.restartDaemon()
        let (adapter, now) = (world.adapter, world.now)
        world.peripherals["d1"]?.objects[adapter] = now
        world.reportSighting("d1", adapter)
        world.run(for: .seconds(2))
        world.peripherals["d1"]?.fault = nil
        let time = world.run(for: .seconds(60), until: \.isIdle)
        #expect(try #require(time) < .seconds(5))
    }
}
