import FoundationEssentials
import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdMachines

/// Generated sequences of faults, in virtual time; a seed always gives the same sequence.
///
/// `GATTHERD_SEQUENCES` is the number of hundreds; ten is suitable for a quick run.
@Suite struct FaultSequenceTests {
    private static let blocks = ProcessInfo.processInfo.environment["GATTHERD_SEQUENCES"].flatMap { UInt64($0) } ?? 10

    @Test(arguments: 1...blocks)
    func `the rules hold in any sequence of faults, and all devices recover`(block: UInt64) throws {
        for seed in (block * 100)..<(block * 100 + 100) { try sequence(seed: seed) }
    }

    /// Runs one sequence, on one or two adapters, of few or many faults.
    private func sequence(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        let adapters = Int.random(in: 1...2, using: &dice)
        var world = try SupervisorWorld(
            devices: Int.random(in: 1...6, using: &dice),
            adapters: adapters,
            seed: seed,
            pinned: adapters == 2 && Bool.random(using: &dice) ? ["d1": 1] : [:]
        )
        var steps: [String] = []
        world.failureRate = Bool.random(using: &dice) ? 0.2 : 0
        if Bool.random(using: &dice) { world.start() } else { world.reportEverything() }
        for _ in 0..<Int.random(in: 5...40, using: &dice) {
            steps.append("\(world.now / .seconds(1)) " + disturb(&world, &dice))
            world.run(for: pause(&dice))
        }
        world.heal()
        // Pending answers may still arrive after the repair.
        world.run(for: .seconds(1))
        let time = world.run(for: .seconds(1200), until: \.isIdle)
        world.run(for: .seconds(40))
        let isWell = time != nil && world.problems.isEmpty && isAtRest(world)
        #expect(isWell, "seed \(seed): \(problem(world))\n\(steps.joined(separator: "\n"))\n\(world.story)")
    }

    private func pause(_ dice: inout SplitMix64) -> Duration {
        let longest = [1, 300, 3000, 60_000].randomElement(using: &dice) ?? 1
        return .milliseconds(Int.random(in: 0...longest, using: &dice))
    }

    /// Causes a disturbance and returns its description.
    private func disturb(_ world: inout SupervisorWorld, _ dice: inout SplitMix64) -> String {
        let name = world.names.randomElement(using: &dice) ?? "d1"
        let address = world.addresses.randomElement(using: &dice) ?? world.adapter
        let number = Int.random(in: 0..<24, using: &dice)
        disturb(&world, &dice, number, name, address)
        return "disturbance \(number) \(name) \(address)"
    }

    private func disturb(
        _ world: inout SupervisorWorld,
        _ dice: inout SplitMix64,
        _ number: Int,
        _ name: String,
        _ address: BluetoothAddress
    ) {
        switch number {
        case 0: world.drop(name)
        case 1: world.vanish(name)
        case 2: world.appear(name)
        case 3: world.remove(name, from: address)
        case 4: world.send(.link(device: name, .sessionStale))
        case 5, 6: world.peripherals[name]?.fault = SupervisorWorld.PeripheralFault.allCases.randomElement(using: &dice)
        case 7: world.peripherals[name]?.fault = nil
        case 8: world.setPowered(address, false)
        case 9: world.setPowered(address, true)
        case 10: world.unplug(address)
        case 11: world.plug(address)
        case 12: world.killDaemon()
        case 13, 14: world.restartDaemon()
        case 15: world.connectByOther(name)
        case 16: world.setOtherLinks(Int.random(in: 0...3, using: &dice), on: address)
        case 17: world.adapters[address]?.slots = Int.random(in: 1...4, using: &dice)
        case 18: world.hold(name)
        case 19, 20: world.release(name)
        case 21: ail(&world, &dice, address)
        case 22: world.peripherals[name]?.isTrusted.toggle()
        default: for name in world.names { world.drop(name) }
        }
    }

    private func ail(_ world: inout SupervisorWorld, _ dice: inout SplitMix64, _ address: BluetoothAddress) {
        world.adapters[address]?.ailment = [.busy, .hangs, .refuses, nil].randomElement(using: &dice) ?? nil
        world.adapters[address]?.hearsNothing = Bool.random(using: &dice)
        world.adapters[address]?.refusesScans = Bool.random(using: &dice)
        world.adapters[address]?.cure = RecoveryLadder.Step.allCases.randomElement(using: &dice)
    }

    /// True if no unneeded activity is under way.
    private func isAtRest(_ world: SupervisorWorld) -> Bool {
        world.attempts.isEmpty && world.cycling.isEmpty && world.machine.table.queue.isEmpty
            && world.adapters.values.allSatisfy { !$0.isScanning && $0.isPowered }
            && Set(world.sessions.keys) == Set(world.names).subtracting(world.held)
            && world.machine.wakes.count < 50
    }

    private func problem(_ world: SupervisorWorld) -> String {
        let states = world.names.map { "\($0) \(world.state($0)?.rawValue ?? "")" }
        return (states + world.addresses.map { "\($0) scans: \(world.adapters[$0]?.isScanning ?? false)" })
            .joined(separator: ", ") + " attempts \(world.attempts) wakes \(world.machine.wakes.count)"
    }
}
