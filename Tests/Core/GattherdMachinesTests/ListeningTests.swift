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
        #expect(discovery(machine.handle(on(adapter), at: .zero)) == [.start(ticket: 1)])
        #expect(discovery(machine.handle(on(other), at: .zero)) == [])
        _ = machine.handle(.discovery(adapter, ticket: 1, .done), at: .zero)
        #expect(discovery(machine.handle(.wake(at: .seconds(90)), at: .seconds(90))) == [])
    }

    @Test func `an adapter with an advertisement monitor scans only after the monitor ends`() {
        var machine = machine(listening: nil)
        _ = machine.handle(.monitoring(adapter, true), at: .zero)
        #expect(discovery(machine.handle(on(adapter), at: .zero)) == [])
        #expect(discovery(machine.handle(.monitoring(adapter, false), at: .zero)) == [.start(ticket: 1)])
        _ = machine.handle(.discovery(adapter, ticket: 1, .done), at: .zero)
        #expect(discovery(machine.handle(.monitoring(adapter, true), at: .zero)) == [.stop(ticket: 2)])
    }

    @Test func `an adapter scans while its advertisement monitor is silent, until the monitor restarts`() {
        var machine = machine(listening: [adapter])
        _ = machine.handle(.monitoring(adapter, true), at: .zero)
        _ = machine.handle(on(adapter), at: .zero)
        _ = machine.handle(.heard(adapter), at: .seconds(60))
        #expect(discovery(machine.handle(.wake(at: .seconds(600)), at: .seconds(600))) == [])
        #expect(discovery(machine.handle(.wake(at: .seconds(660)), at: .seconds(660))) == [.start(ticket: 1)])
        _ = machine.handle(.discovery(adapter, ticket: 1, .done), at: .seconds(660))
        let again: [SupervisorMachine.Event] = [
            .heard(adapter), .monitoring(adapter, true), .monitoring(adapter, false),
        ]
        for event in again { #expect(discovery(machine.handle(event, at: .seconds(661))) == []) }
        #expect(discovery(machine.handle(.monitoring(adapter, true), at: .seconds(662))) == [.stop(ticket: 2)])
    }

    @Test func `a silent adapter without assigned devices does not scan`() {
        var machine = machine(listening: [])
        _ = machine.handle(.monitoring(adapter, true), at: .zero)
        _ = machine.handle(on(adapter), at: .zero)
        #expect(machine.handle(.wake(at: .seconds(86_400)), at: .seconds(86_400)) == [])
    }

    @Test func `the silence of an adapter counts from its power-on`() {
        var machine = machine(listening: [adapter])
        _ = machine.handle(.monitoring(adapter, true), at: .zero)
        #expect(discovery(machine.handle(on(adapter), at: .seconds(500))) == [])
        #expect(discovery(machine.handle(.wake(at: .seconds(600)), at: .seconds(600))) == [])
        #expect(discovery(machine.handle(.wake(at: .seconds(1100)), at: .seconds(1100))) == [.start(ticket: 1)])
    }

    @Test func `an adapter does not scan during an attempt to connect`() {
        var machine = machine(devices: ["strap"], listening: nil)
        _ = machine.handle(.sighted(device: "strap", on: adapter, .init(isConnected: false)), at: .zero)
        #expect(discovery(machine.handle(on(adapter), at: .zero)) == [])
        #expect(machine.state(of: "strap") == .connecting)
        let failed = machine.handle(.link(device: "strap", .hold), at: .seconds(1))
        #expect(
            discovery(failed + machine.handle(.link(device: "strap", .disconnected(ticket: 2)), at: .seconds(2))).count
                == 1
        )
    }

    @Test(arguments: [false, true])
    func `an absent device does not keep the adapter from listening for others`(isSeeking: Bool) {
        var machine = machine(devices: ["strap"], listening: isSeeking ? [] : nil)
        _ = machine.handle(.seeking(isSeeking), at: .zero)
        _ = machine.handle(.sighted(device: "strap", on: adapter, .init(isConnected: false)), at: .zero)
        let asked = machine.handle(on(adapter), at: .zero)
        #expect(asked.contains(.wake(at: .milliseconds(1500))))
        let later = machine.handle(.wake(at: .milliseconds(1500)), at: .milliseconds(1500))
        #expect(machine.state(of: "strap") == .connecting)
        #expect(discovery(later) == [.start(ticket: 1)])
    }

    @Test func `every adapter scans during a search for new peripherals, even with a monitor`() {
        var machine = machine(listening: [])
        _ = machine.handle(.monitoring(adapter, true), at: .zero)
        #expect(discovery(machine.handle(on(adapter), at: .zero)) == [])
        #expect(discovery(machine.handle(.seeking(true), at: .zero)) == [.start(ticket: 1)])
        _ = machine.handle(.discovery(adapter, ticket: 1, .done), at: .zero)
        #expect(discovery(machine.handle(.seeking(false), at: .zero)) == [.stop(ticket: 2)])
    }

    @Test func `silence is an adapter fault while sensors are listened to, not during a search`() {
        for (isSeeking, remedies) in [(true, 0), (false, 1)] {
            var machine = machine(listening: isSeeking ? [] : [adapter])
            _ = machine.handle(.seeking(isSeeking), at: .zero)
            _ = machine.handle(on(adapter), at: .zero)
            _ = machine.handle(.discovery(adapter, ticket: 1, .done), at: .zero)
            let day = Duration.seconds(86_400)
            let effects = machine.handle(.wake(at: day), at: day)
            #expect(effects.count { if case .remedy = $0 { true } else { false } } == remedies)
        }
    }

    @Test func `a device counts as missing from its release, not from the start of a search`() {
        var machine = machine(devices: ["strap"], listening: [])
        let steps: [SupervisorMachine.Event] = [
            .seeking(true), .link(device: "strap", .hold), on(adapter), .discovery(adapter, ticket: 1, .done),
        ]
        for step in steps { _ = machine.handle(step, at: .zero) }
        let day = Duration.seconds(86_400)
        let missed = machine.handle(.link(device: "strap", .release), at: day)
        #expect(!missed.contains { if case .remedy = $0 { true } else { false } })
        let later = machine.handle(.wake(at: day + .seconds(600)), at: day + .seconds(600))
        #expect(later.contains { if case .remedy = $0 { true } else { false } })
    }
}
