import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdMachines

@Suite struct SupervisorMachineTests {
    @Test func `all devices become ready, one connect at a time, and discovery stops`() throws {
        var world = try SupervisorWorld(devices: 64, seed: 1)
        world.start()
        #expect(world.run(for: .seconds(14), until: \.isIdle) != nil)
        #expect(world.names.allSatisfy { world.readyCount[$0] == 1 && world.connectCount[$0] == 1 })
        #expect(world.adapters[world.adapter]?.isScanning == false)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `64 devices with a fifth of attempts failing are ready near the sequential time`() throws {
        for seed in 1...5 as ClosedRange<UInt64> {
            var world = try SupervisorWorld(devices: 64, seed: seed)
            world.failureRate = 0.2
            world.start()
            let time = world.run(for: .seconds(200), until: \.isIdle)
            #expect(try #require(time) < .seconds(45), "seed \(seed)")
            #expect(world.problems.isEmpty, "\(world.story)")
        }
    }

    @Test func `failing devices do not delay the others`() throws {
        var world = try SupervisorWorld(devices: 40, seed: 1)
        for name in world.names.prefix(8) { world.peripherals[name]?.fault = .neverConnects }
        for name in world.names.dropFirst(8).prefix(8) { world.peripherals[name]?.fault = .abortsConnect }
        let healthy = world.names.suffix(24)
        world.start()
        let time = world.run(for: .seconds(60)) { world in healthy.allSatisfy { world.state($0) == .ready } }
        #expect(try #require(time) < .seconds(25))
        for _ in 0..<20 {
            world.drop("d40")
            let time = world.run(for: .seconds(60)) { $0.state("d40") == .ready }
            #expect(try #require(time) < .seconds(12))
            world.run(for: .seconds(31))
        }
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `an unseen device starts discovery`() throws {
        var world = try SupervisorWorld(devices: 2, seed: 1)
        world.reportEverything()
        #expect(world.run(for: .seconds(3), until: \.isIdle) != nil)
        world.vanish("d1")
        world.remove("d1", from: world.adapter)
        world.run(for: .seconds(1))
        #expect(world.adapters[world.adapter]?.isScanning == true)
        world.appear("d1")
        #expect(world.run(for: .seconds(15), until: \.isIdle) != nil)
        world.run(for: .seconds(1))
        #expect(world.adapters[world.adapter]?.isScanning == false)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `devices known before their adapter connect without discovery`() throws {
        var world = try SupervisorWorld(devices: 2, seed: 1)
        world.start()
        world.run(for: .seconds(3))
        #expect(world.isIdle)
        #expect(world.adapters[world.adapter]?.session == 0, "no scan was ever started")
    }

    @Test func `a held device starts no discovery`() throws {
        var world = try SupervisorWorld(devices: 1, seed: 1, held: ["d1"])
        world.reportEverything()
        world.run(for: .seconds(100))
        #expect(world.adapters[world.adapter]?.session == 0)
        #expect(world.connectCount.isEmpty)
    }

    @Test func `two adapters share the work and halve the time`() throws {
        var world = try SupervisorWorld(devices: 64, adapters: 2, seed: 1)
        world.start()
        #expect(world.run(for: .seconds(8), until: \.isIdle) != nil)
        let counts = world.addresses.map { world.links(on: $0) }
        #expect(counts == [32, 32])
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `a device uses the adapter that hears it best, or its pinned one only`() throws {
        var world = try SupervisorWorld(devices: 3, adapters: 2, seed: 1, pinned: ["d3": 0])
        for name in world.names {
            world.peripherals[name]?.rssi = [world.addresses[0]: -85, world.addresses[1]: -50]
        }
        world.peripherals["d2"]?.rssi[world.addresses[1]] = -90
        world.reportEverything()
        #expect(world.run(for: .seconds(15), until: \.isIdle) != nil)
        let places = ["d1", "d2", "d3"].map { world.peripherals[$0]?.link }
        #expect(places == [world.addresses[1], world.addresses[0], world.addresses[0]])
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `an unplugged adapter's devices move to the other, and some return with it`() throws {
        var world = try SupervisorWorld(devices: 8, adapters: 2, seed: 1)
        world.start()
        world.run(for: .seconds(5))
        world.unplug(world.addresses[0])
        #expect(world.run(for: .seconds(60), until: \.isIdle) != nil)
        #expect(world.links(on: world.addresses[1]) == 8)
        world.plug(world.addresses[0])
        world.unplug(world.addresses[1])
        #expect(world.run(for: .seconds(60), until: \.isIdle) != nil)
        #expect(world.links(on: world.addresses[0]) == 8)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test(arguments: [1, 2])
    func `a link on the second adapter is taken over, in any order of adapters`(first: UInt64) {
        var machine = SupervisorMachine(devices: ["strap"], seed: 1)
        let (other, linked) = (BluetoothAddress(value: 1), BluetoothAddress(value: 2))
        let on = [other, linked].map { SupervisorMachine.Event.adapter($0, isPowered: true, isDiscovering: false) }
        var events: [SupervisorMachine.Event] = [
            .sighted(device: "strap", on: other, .init(isConnected: false)),
            .sighted(device: "strap", on: linked, .init(isConnected: true)),
        ]
        events += first == 1 ? on : on.reversed()
        let effects = events.flatMap { machine.handle($0, at: .zero) }
        #expect(effects.contains { if case .link("strap", on: linked, .openSession) = $0 { true } else { false } })
        #expect(!effects.contains { if case .link(_, _, .connect) = $0 { true } else { false } })
    }

    @Test func `a reported link on an adapter that proves to be off blocks no device`() {
        var machine = SupervisorMachine(devices: ["strap"], seed: 1)
        let (usable, off) = (BluetoothAddress(value: 1), BluetoothAddress(value: 2))
        let events: [SupervisorMachine.Event] = [
            .sighted(device: "strap", on: usable, .init(isConnected: false)),
            .sighted(device: "strap", on: off, .init(isConnected: true)),
            .adapter(off, isPowered: false, isDiscovering: false),
            .adapter(usable, isPowered: true, isDiscovering: false),
        ]
        for event in events { _ = machine.handle(event, at: .zero) }
        _ = machine.handle(.wake(at: .seconds(2)), at: .seconds(2))
        #expect(machine.state(of: "strap") == .connecting)
    }

    @Test func `the loss of an unrelated adapter does not shorten a pause`() throws {
        var world = try SupervisorWorld(devices: 1, adapters: 2, seed: 1)
        world.peripherals["d1"]?.fault = .abortsConnect
        world.start()
        let failure = world.run(for: .seconds(10)) { $0.state("d1") == .backingOff }
        #expect(failure != nil)
        world.setPowered(world.addresses[0], false)
        #expect(world.state("d1") == .backingOff)
        world.setPowered(world.addresses[1], false)
        #expect(world.state("d1") == .disconnected)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `an adapter unplugged during a power cycle gets no further steps, and works after its return`() throws {
        var world = try SupervisorWorld(devices: 2, seed: 1)
        world.adapters[world.adapter]?.hearsNothing = true
        world.reportEverything()
        let cycle = world.run(for: .seconds(600)) { $0.cycling.contains($0.adapter) }
        #expect(cycle != nil)
        world.unplug(world.adapter)
        world.run(for: .seconds(100))
        world.adapters[world.adapter]?.hearsNothing = false
        world.plug(world.adapter)
        #expect(world.run(for: .seconds(10), until: \.isIdle) != nil)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `an adapter unplugged while bluetoothd is away is not powered on until it is plugged in`() throws {
        var world = try SupervisorWorld(devices: 2, seed: 1)
        world.adapters[world.adapter]?.hearsNothing = true
        world.reportEverything()
        let cycle = world.run(for: .seconds(600)) { $0.cycling.contains($0.adapter) }
        #expect(cycle != nil)
        world.killDaemon()
        world.unplug(world.adapter)
        world.restartDaemon()
        world.run(for: .seconds(200))
        #expect(world.problems.isEmpty, "\(world.story)")
        world.adapters[world.adapter]?.hearsNothing = false
        world.plug(world.adapter)
        #expect(world.run(for: .seconds(10), until: \.isIdle) != nil)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `the slots of an adapter are learned, and devices without one use another adapter`() throws {
        var world = try SupervisorWorld(devices: 8, adapters: 2, seed: 1)
        world.adapters[world.addresses[0]]?.slots = 3
        world.start()
        #expect(world.run(for: .seconds(60), until: \.isIdle) != nil)
        #expect(world.links(on: world.addresses[0]) <= 3)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `a full adapter is probed now and then, and used again when a slot is free`() throws {
        var world = try SupervisorWorld(devices: 8, seed: 1)
        world.adapters[world.adapter]?.slots = 5
        world.start()
        world.run(for: .seconds(300))
        #expect(world.reports[world.adapter]?.slots == 5)
        #expect(world.reports[world.adapter]?.links == 5)
        let before = world.connectCount.values.reduce(0, +)
        world.run(for: .seconds(3600))
        let probes = world.connectCount.values.reduce(0, +) - before
        #expect((3...20).contains(probes), "\(probes) probes in an hour")
        world.adapters[world.adapter]?.slots = nil
        #expect(world.run(for: .seconds(700), until: \.isIdle) != nil)
        #expect(world.reports[world.adapter]?.slots == nil)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `slots used by other programs count`() throws {
        var world = try SupervisorWorld(devices: 4, seed: 1)
        world.adapters[world.adapter]?.slots = 5
        world.start()
        world.setOtherLinks(3, on: world.adapter)
        world.run(for: .seconds(300))
        #expect(world.reports[world.adapter]?.slots == 5)
        #expect(world.links(on: world.adapter) == 5)
        world.setOtherLinks(0, on: world.adapter)
        #expect(world.run(for: .seconds(2), until: \.isIdle) != nil, "known slots are used at once")
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `all devices are ready again after bluetoothd returns`() throws {
        var world = try SupervisorWorld(devices: 16, seed: 3)
        world.start()
        world.run(for: .seconds(10))
        world.killDaemon()
        #expect(world.names.allSatisfy { world.state($0) == .disconnected })
        world.restartDaemon()
        #expect(world.run(for: .seconds(20), until: \.isIdle) != nil)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `a device that waits alone for a full adapter reports this after some refusals`() throws {
        var world = try SupervisorWorld(devices: 3, seed: 1)
        world.adapters[world.adapter]?.slots = 2
        world.start()
        world.run(for: .seconds(20))
        #expect(world.reports[world.adapter]?.slots == nil)
        let details = world.changes.values.joined().compactMap(\.detail)
        #expect(details.contains { $0.hasSuffix("may be full with 2 links") }, "\(details)")
    }
}
