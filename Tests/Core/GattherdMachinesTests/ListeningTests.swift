import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdMachines

/// Discovery for connectionless devices.
struct ListeningTests {
    private let adapter = BluetoothAddress(value: 1)
    private let other = BluetoothAddress(value: 2)

    private func machine(devices: [String] = [], listening: Set<BluetoothAddress>?) -> SupervisorMachine {
        SupervisorMachine(devices: devices, listening: listening, seed: 1)
    }

    private func discovery(_ effects: [SupervisorMachine.Effect]) -> [DiscoveryMachine.Effect] {
        effects.compactMap { effect in
            if case .discovery(_, let discovery) = effect { discovery } else { nil }
        }
    }

    private func on(_ adapter: BluetoothAddress) -> SupervisorMachine.Event {
        .adapter(adapter, isPowered: true, isDiscovering: false)
    }

    @Test func `an adapter scans while it listens for connectionless devices`() {
        var machine = machine(listening: [adapter])
        #expect(discovery(machine.handle(on(adapter), now: .zero)) == [.start(ticket: 1)])
        #expect(discovery(machine.handle(on(other), now: .zero)) == [])
        _ = machine.handle(.discovery(adapter, ticket: 1, .done), now: .zero)
        #expect(discovery(machine.handle(.wake(at: .seconds(90)), now: .seconds(90))) == [])
    }

    @Test func `an adapter with an advertisement monitor scans only after the monitor ends`() {
        var machine = machine(listening: nil)
        _ = machine.handle(.monitoring(adapter, true), now: .zero)
        #expect(discovery(machine.handle(on(adapter), now: .zero)) == [])
        #expect(discovery(machine.handle(.monitoring(adapter, false), now: .zero)) == [.start(ticket: 1)])
        _ = machine.handle(.discovery(adapter, ticket: 1, .done), now: .zero)
        #expect(discovery(machine.handle(.monitoring(adapter, true), now: .zero)) == [.stop(ticket: 2)])
    }

    @Test func `an adapter scans while its advertisement monitor is silent, until the monitor restarts`() {
        var machine = machine(listening: [adapter])
        _ = machine.handle(.monitoring(adapter, true), now: .zero)
        _ = machine.handle(on(adapter), now: .zero)
        _ = machine.handle(.heard(adapter), now: .seconds(60))
        #expect(discovery(machine.handle(.wake(at: .seconds(600)), now: .seconds(600))) == [])
        #expect(discovery(machine.handle(.wake(at: .seconds(660)), now: .seconds(660))) == [.start(ticket: 1)])
        _ = machine.handle(.discovery(adapter, ticket: 1, .done), now: .seconds(660))
        let again: [SupervisorMachine.Event] = [
            .heard(adapter), .monitoring(adapter, true), .monitoring(adapter, false),
        ]
        for event in again { #expect(discovery(machine.handle(event, now: .seconds(661))) == []) }
        #expect(discovery(machine.handle(.monitoring(adapter, true), now: .seconds(662))) == [.stop(ticket: 2)])
    }

    @Test func `a silent adapter without assigned devices does not scan`() {
        var machine = machine(listening: [])
        _ = machine.handle(.monitoring(adapter, true), now: .zero)
        _ = machine.handle(on(adapter), now: .zero)
        #expect(machine.handle(.wake(at: .seconds(86_400)), now: .seconds(86_400)) == [])
    }

    @Test func `the silence of an adapter counts from its power-on`() {
        var machine = machine(listening: [adapter])
        _ = machine.handle(.monitoring(adapter, true), now: .zero)
        #expect(discovery(machine.handle(on(adapter), now: .seconds(500))) == [])
        #expect(discovery(machine.handle(.wake(at: .seconds(600)), now: .seconds(600))) == [])
        #expect(discovery(machine.handle(.wake(at: .seconds(1100)), now: .seconds(1100))) == [.start(ticket: 1)])
    }

    @Test func `an adapter does not scan during an attempt to connect`() {
        var machine = machine(devices: ["strap"], listening: nil)
        _ = machine.handle(.sighted(device: "strap", on: adapter, .init(isConnected: false)), now: .zero)
        #expect(discovery(machine.handle(on(adapter), now: .zero)) == [])
        #expect(machine.state(of: "strap") == .connecting)
        let failed = machine.handle(.link(device: "strap", .hold), now: .seconds(1))
        #expect(
            discovery(failed + machine.handle(.link(device: "strap", .disconnected(ticket: 2)), now: .seconds(2))).count
                == 1
        )
    }

    @Test(arguments: [false, true])
    func `an absent device does not keep the adapter from listening for others`(isSeeking: Bool) {
        var machine = machine(devices: ["strap"], listening: isSeeking ? [] : nil)
        _ = machine.handle(.seeking(isSeeking), now: .zero)
        _ = machine.handle(.sighted(device: "strap", on: adapter, .init(isConnected: false)), now: .zero)
        let asked = machine.handle(on(adapter), now: .zero)
        #expect(asked.contains(.wake(at: .milliseconds(1500))))
        let later = machine.handle(.wake(at: .milliseconds(1500)), now: .milliseconds(1500))
        #expect(machine.state(of: "strap") == .connecting)
        #expect(discovery(later) == [.start(ticket: 1)])
    }

    @Test func `every adapter scans during a search for new peripherals, even with a monitor`() {
        var machine = machine(listening: [])
        _ = machine.handle(.monitoring(adapter, true), now: .zero)
        #expect(discovery(machine.handle(on(adapter), now: .zero)) == [])
        #expect(discovery(machine.handle(.seeking(true), now: .zero)) == [.start(ticket: 1)])
        _ = machine.handle(.discovery(adapter, ticket: 1, .done), now: .zero)
        #expect(discovery(machine.handle(.seeking(false), now: .zero)) == [.stop(ticket: 2)])
    }

    @Test func `silence is an adapter fault for listened devices, not during a search`() {
        for (isSeeking, remedies) in [(true, 0), (false, 1)] {
            var machine = machine(listening: isSeeking ? [] : [adapter])
            _ = machine.handle(.seeking(isSeeking), now: .zero)
            _ = machine.handle(on(adapter), now: .zero)
            _ = machine.handle(.discovery(adapter, ticket: 1, .done), now: .zero)
            let day = Duration.seconds(86_400)
            let effects = machine.handle(.wake(at: day), now: day)
            #expect(effects.count { if case .remedy = $0 { true } else { false } } == remedies)
        }
    }

    @Test func `a device counts as missing from its release, not from the start of a search`() {
        var machine = machine(devices: ["strap"], listening: [])
        let steps: [SupervisorMachine.Event] = [
            .seeking(true), .link(device: "strap", .hold), on(adapter), .discovery(adapter, ticket: 1, .done),
        ]
        for step in steps { _ = machine.handle(step, now: .zero) }
        let day = Duration.seconds(86_400)
        let missed = machine.handle(.link(device: "strap", .release), now: day)
        #expect(!missed.contains { if case .remedy = $0 { true } else { false } })
        let later = machine.handle(.wake(at: day + .seconds(600)), now: day + .seconds(600))
        #expect(later.contains { if case .remedy = $0 { true } else { false } })
    }
}
