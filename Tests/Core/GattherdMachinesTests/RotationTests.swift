import GattherdModel
import Testing

@testable import GattherdMachines

@Suite struct RotationTests {
    /// Creates a world with few slots, more devices than slots, and turns of five minutes.
    private func world(
        devices: Int,
        slots: Int,
        adapters: Int = 1,
        seed: UInt64 = 1,
        rotation: Duration? = .seconds(300)
    ) throws -> SupervisorWorld {
        var policy = SupervisorMachine.Policy()
        policy.rotation = rotation
        var world = try SupervisorWorld(devices: devices, adapters: adapters, seed: seed, policy: policy)
        for address in world.addresses { world.adapters[address]?.slots = slots }
        world.start()
        return world
    }

    /// Returns the minutes for which each device is ready within a time.
    private func readyMinutes(_ world: inout SupervisorWorld, minutes: Int) -> [String: Int] {
        var counts: [String: Int] = [:]
        for _ in 0..<minutes {
            world.run(for: .seconds(60))
            for name in world.names where world.state(name) == .ready { counts[name, default: 0] += 1 }
        }
        return counts
    }

    @Test(arguments: [(4, 3), (6, 3), (7, 1)])
    func `devices on a full adapter take turns of equal length`(devices: Int, slots: Int) throws {
        var world = try world(devices: devices, slots: slots)
        world.run(for: .seconds(3600))
        let counts = readyMinutes(&world, minutes: 280)
        let fair = 280 * slots / devices
        for name in world.names {
            let count = counts[name, default: 0]
            #expect((fair * 7 / 10...fair * 13 / 10).contains(count), "\(name): \(count) minutes instead of \(fair)")
        }
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    /// Returns the number of times that each device made room for another one.
    private func yields(_ world: SupervisorWorld) -> [String: Int] {
        world.changes.mapValues { $0.count { $0.to == .backingOff && $0.reason == .rotated } }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `of two full adapters, one makes room for a device that has waited for a period`(seed: UInt64) throws {
        var world = try world(devices: 5, slots: 2, adapters: 2, seed: seed)
        var times: [Duration] = []
        for _ in 0..<10_800 {
            world.run(for: .seconds(1))
            let count = yields(world).values.reduce(0, +)
            times += repeatElement(world.now, count: count - times.count)
        }
        let pauses = zip(times.dropFirst(), times).map { $0 - $1 }
        #expect(pauses.allSatisfy { $0 >= .seconds(299) }, "\(pauses)")
        #expect(world.names.allSatisfy { yields(world)[$0, default: 0] > 0 }, "\(yields(world))")
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test func `a device that has a link on one adapter does not wait for a slot of another`() throws {
        var world = try world(devices: 5, slots: 2, adapters: 2)
        for _ in 0..<3600 {
            world.run(for: .seconds(2))
            let ready = world.names.filter { world.state($0) == .ready }
            #expect(ready.filter { world.machine.table.waitingSince($0) != nil } == [])
        }
        #expect(world.names.contains { world.readyCount[$0, default: 0] > 1 })
    }

    @Test func `the first devices keep their slots without turns`() throws {
        var world = try world(devices: 5, slots: 3, rotation: nil)
        world.run(for: .seconds(3600))
        let ready = world.names.filter { world.state($0) == .ready }
        #expect(ready.count == 3)
        #expect(world.names.allSatisfy { world.readyCount[$0, default: 0] <= 1 })
        #expect(world.reports[world.adapter]?.waiting == world.names.filter { !ready.contains($0) })
        #expect(world.reports[world.adapter]?.isFull == true)
    }

    @Test func `one device too many is enough to detect a full adapter`() throws {
        var world = try world(devices: 4, slots: 3, rotation: nil)
        let time = world.run(for: .seconds(600)) { $0.reports[$0.adapter]?.waiting.count == 1 }
        #expect(time != nil)
    }

    @Test func `turns become rarer while the waiting devices are out of range`() throws {
        var world = try world(devices: 4, slots: 3)
        _ = world.run(for: .seconds(600)) { $0.reports[$0.adapter]?.waiting.count == 1 }
        let absent = world.names.first { world.state($0) != .ready } ?? "d1"
        world.vanish(absent)
        world.run(for: .seconds(24 * 3600))
        let count = world.names.reduce(0) { $0 + world.readyCount[$1, default: 0] }
        #expect(count < 60, "\(count)")
        world.appear(absent)
        let time = world.run(for: .seconds(3000)) { $0.state(absent) == .ready }
        #expect(time != nil)
        #expect(world.problems.isEmpty, "\(world.story)")
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `no more links end than devices wait, and every device gets its turn`(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        let slots = Int.random(in: 1...5, using: &dice)
        var world = try world(devices: slots + Int.random(in: 1...6, using: &dice), slots: slots, seed: seed)
        for _ in 0..<30 {
            let name = world.names.randomElement(using: &dice) ?? "d1"
            switch Int.random(in: 0..<6, using: &dice) {
            case 0: world.drop(name)
            case 1: world.vanish(name)
            case 2: for name in world.names { world.appear(name) }
            case 3: world.hold(name)
            case 4: for name in world.held { world.release(name) }
            default: break
            }
            world.run(for: .seconds(Int.random(in: 1...900, using: &dice)))
        }
        for name in world.names { world.appear(name) }
        for name in world.held { world.release(name) }
        let before = world.readyCount
        world.run(for: .seconds(3 * 3600))
        for name in world.names {
            let isNew = world.readyCount[name, default: 0] > before[name, default: 0]
            #expect(isNew || world.state(name) == .ready, "seed \(seed): \(name)")
        }
        #expect(world.problems.isEmpty, "seed \(seed)\n\(world.story)")
    }
}
