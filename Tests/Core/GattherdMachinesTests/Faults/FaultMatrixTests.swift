import GattherdModel
import Testing

@testable import GattherdMachines

/// Every fault in every state of a link, in virtual time, with all rules checked after each event.
@Suite struct FaultMatrixTests {
    @Test(arguments: Fault.allCases, LinkState.allCases)
    func `all devices recover from every fault in every state`(fault: Fault, state: LinkState) throws {
        for seed in 1...3 as ClosedRange<UInt64> {
            var world = try SupervisorWorld(devices: 4, seed: seed)
            let isThere = world.bring("d1", to: state)
            #expect(isThere, "\(state) was not reached\n\(world.story)")
            fault.begin(in: &world, "d1")
            world.run(for: fault.duration)
            fault.end(in: &world, "d1")
            world.relieve("d1", from: state)
            let time = world.run(for: .seconds(2000), until: \.isIdle)
            let limit = state == .failed ? fault.limit + world.machine.policy.link.slowRetry : fault.limit
            #expect(try #require(time, "seed \(seed)\n\(world.story)") <= limit, "seed \(seed)")
            #expect(world.problems.isEmpty, "seed \(seed)\n\(world.story)")
        }
    }
}

extension SupervisorWorld {
    /// Brings the device into a state; false if it does not reach it.
    mutating func bring(_ name: String, to state: LinkState) -> Bool {
        switch state {
        case .waiting:
            peripherals[name]?.isInRange = false
            reportEverything()
        case .disconnected:
            start()
            killDaemon()
        case .backingOff:
            peripherals[name]?.fault = .abortsConnect
            start()
        case .failed:
            peripherals[name]?.fault = .lacksOurServices
            start()
        case .held, .disconnecting:
            start()
            _ = run(for: .seconds(10)) { $0.state(name) == .ready }
            hold(name)
        case .connecting, .discovering, .preparing, .ready: start()
        }
        return run(for: .seconds(10)) { $0.state(name) == state } != nil
    }

    /// Removes the cause of that state, except a user's request to disconnect.
    mutating func relieve(_ name: String, from state: LinkState) {
        switch state {
        case .waiting: appear(name)
        case .disconnected: restartDaemon()
        case .backingOff, .failed: peripherals[name]?.fault = nil
        case .disconnecting: release(name)
        case .connecting, .discovering, .preparing, .ready, .held: break
        }
    }
}
