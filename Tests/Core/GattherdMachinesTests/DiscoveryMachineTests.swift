import GattherdMachines
import Testing

@Suite struct DiscoveryMachineTests {
    @Test func `discovery starts when wanted and stops when not, with one pending request`() {
        var machine = DiscoveryMachine()
        #expect(machine.nextRequest(isWanted: false, at: .zero) == nil)
        #expect(machine.nextRequest(isWanted: true, at: .zero) == .start(ticket: 1))
        #expect(machine.nextRequest(isWanted: false, at: .zero) == nil, "the start is not answered yet")
        machine.answered(1, .done, at: .seconds(1))
        #expect(machine.since == .seconds(1))
        #expect(machine.nextRequest(isWanted: false, at: .seconds(1)) == .stop(ticket: 2))
        #expect(machine.nextRequest(isWanted: true, at: .seconds(1)) == nil, "nor is the stop")
        machine.answered(2, .done, at: .seconds(1))
        #expect(machine.nextRequest(isWanted: true, at: .seconds(1)) == .start(ticket: 3))
    }

    @Test func `a failed start is retried after growing pauses`() {
        var machine = DiscoveryMachine()
        var now = Duration.zero
        var pauses: [Duration] = []
        for ticket in 1...8 {
            #expect(machine.nextRequest(isWanted: true, at: now) == .start(ticket: ticket))
            machine.answered(ticket, .refused, at: now)
            #expect(machine.failures == ticket)
            let deadline = machine.deadline(isWanted: true) ?? now
            #expect(machine.nextRequest(isWanted: true, at: deadline - .milliseconds(1)) == nil)
            pauses.append(deadline - now)
            now = deadline
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) })
    }

    @Test func `a missing answer counts as a failure`() {
        var machine = DiscoveryMachine()
        _ = machine.nextRequest(isWanted: true, at: .zero)
        #expect(machine.deadline(isWanted: true) == .seconds(60))
        #expect(machine.nextRequest(isWanted: true, at: .seconds(60)) == nil)
        #expect(machine.nextRequest(isWanted: true, at: .seconds(61)) == .start(ticket: 2))
        machine.answered(1, .done, at: .seconds(61))
        #expect(machine.since == nil, "the first answer is stale")
    }

    @Test func `discovery that may have started without an answer is stopped when unwanted`() {
        var machine = DiscoveryMachine()
        _ = machine.nextRequest(isWanted: true, at: .zero)
        #expect(machine.nextRequest(isWanted: false, at: .seconds(59)) == nil)
        #expect(machine.nextRequest(isWanted: false, at: .seconds(60)) == nil, "BlueZ is given a moment")
        #expect(machine.deadline(isWanted: false) == .seconds(61))
        #expect(machine.nextRequest(isWanted: false, at: .seconds(61)) == .stop(ticket: 2))
        machine.answered(2, .missing, at: .seconds(70))
        #expect(machine.nextRequest(isWanted: false, at: .seconds(70)) == nil)
        #expect(machine.nextRequest(isWanted: false, at: .seconds(71)) == .stop(ticket: 3))
        machine.answered(3, .refused, at: .seconds(72))
        #expect(machine.nextRequest(isWanted: false, at: .seconds(72)) == nil, "BlueZ knows of no scan of ours")
        #expect(machine.deadline(isWanted: false) == nil)
    }

    @Test func `discovery that BlueZ ended is restarted, after longer than BlueZ's own pauses`() {
        var machine = DiscoveryMachine()
        _ = machine.nextRequest(isWanted: true, at: .zero)
        machine.answered(1, .done, at: .zero)
        machine.reported(isDiscovering: false, at: .zero)
        #expect(machine.deadline(isWanted: true) == nil, "it may not know that property")
        machine.reported(isDiscovering: true, at: .seconds(1))
        machine.reported(isDiscovering: false, at: .seconds(10))
        machine.reported(isDiscovering: false, at: .seconds(20))
        #expect(machine.nextRequest(isWanted: true, at: .seconds(39)) == nil)
        #expect(machine.nextRequest(isWanted: true, at: .seconds(40)) == .stop(ticket: 2))
        machine.answered(2, .done, at: .seconds(40))
        #expect(machine.nextRequest(isWanted: true, at: .seconds(40)) == .start(ticket: 3))
    }

    @Test func `the loss of the adapter ends discovery and voids the pending answer`() {
        var machine = DiscoveryMachine()
        _ = machine.nextRequest(isWanted: true, at: .zero)
        machine.reset()
        machine.answered(1, .done, at: .zero)
        #expect(machine.since == nil)
        #expect(machine.nextRequest(isWanted: true, at: .zero) == .start(ticket: 3))
    }

    @Test func `a restart is a stop and a start`() {
        var machine = DiscoveryMachine()
        machine.restart()
        #expect(machine.nextRequest(isWanted: false, at: .zero) == nil)
        #expect(machine.nextRequest(isWanted: true, at: .zero) == .start(ticket: 1))
        machine.answered(1, .done, at: .zero)
        machine.restart()
        #expect(machine.nextRequest(isWanted: true, at: .zero) == .stop(ticket: 2))
        machine.answered(2, .done, at: .zero)
        #expect(machine.nextRequest(isWanted: true, at: .zero) == .start(ticket: 3))
    }
}
