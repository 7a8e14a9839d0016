import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdMachines

/// A hung controller: bluetoothd still shows the links and answers `Connect` at once, but no link carries data.
@Suite struct HungControllerTests {
    private struct World {
        static let adapter = BluetoothAddress(value: 1)
        var machine: SupervisorMachine
        var now = Duration.zero
        var isHung = false
        var remedies: [RecoveryLadder.Remedy] = []
        var tickets: [String: Int] = [:]
        private var agenda: [(due: Duration, event: SupervisorMachine.Event)] = []

        init(devices: [String]) {
            machine = SupervisorMachine(devices: devices, seed: 1)
            send(.adapter(Self.adapter, isPowered: true, isDiscovering: false))
            for name in devices { send(.sighted(device: name, on: Self.adapter, .init(isConnected: true))) }
        }

        mutating func send(_ event: SupervisorMachine.Event) {
            for effect in machine.handle(event, at: now) { perform(effect) }
        }

        mutating func run(until end: Duration) {
            while let index = agenda.indices.min(by: { agenda[$0].due < agenda[$1].due }), agenda[index].due <= end {
                let (due, event) = agenda.remove(at: index)
                now = max(now, due)
                send(event)
            }
            now = end
        }

        private mutating func perform(_ effect: SupervisorMachine.Effect) {
            switch effect {
            case .wake(let time): agenda.append((time, .wake(at: time)))
            case .remedy(_, let remedy): remedies.append(remedy)
            case .discovery(let adapter, .start(let ticket)), .discovery(let adapter, .stop(let ticket)):
                after(.milliseconds(1), .discovery(adapter, ticket: ticket, .done))
            case .link(let name, _, let effect): perform(effect, name)
            default: break
            }
        }

        private mutating func perform(_ effect: LinkMachine.Effect, _ name: String) {
            switch effect {
            case .connect(let ticket): after(.milliseconds(2), .link(device: name, .connected(ticket: ticket)))
            case .openSession(let ticket) where isHung:
                let fault = LinkFault(.timedOut, "no answer")
                after(.seconds(10), .link(device: name, .failed(fault, ticket: ticket)))
            case .openSession(let ticket):
                tickets[name] = ticket
                after(.milliseconds(10), .link(device: name, .discovered(ticket: ticket)))
                after(.milliseconds(20), .link(device: name, .prepared(ticket: ticket)))
            case .disconnect(let ticket): after(.milliseconds(1), .link(device: name, .disconnected(ticket: ticket)))
            default: break
            }
        }

        private mutating func after(_ delay: Duration, _ event: SupervisorMachine.Event) {
            agenda.append((now + delay, event))
        }
    }

    @Test func `an adapter whose links proved dead is power-cycled, although bluetoothd claims new ones`() {
        var world = World(devices: ["d1", "d2"])
        world.run(until: .seconds(60))
        #expect(world.machine.state(of: "d1") == .ready)
        #expect(world.machine.state(of: "d2") == .ready)
        world.isHung = true
        for (name, ticket) in world.tickets {
            world.send(.link(device: name, .failed(LinkFault(.silent, "no answer"), ticket: ticket)))
        }
        #expect(world.remedies.map(\.symptom) == [.stall])
        world.run(until: .seconds(240))
        #expect(world.remedies.contains { $0.step == .powerCycle && $0.symptom == .stall }, "\(world.remedies)")
    }

    @Test func `a single failing device causes no remedy`() {
        var world = World(devices: ["d1", "d2"])
        world.run(until: .seconds(60))
        world.isHung = true
        let ticket = world.tickets["d1"] ?? 0
        world.send(.link(device: "d1", .failed(LinkFault(.silent, "no answer"), ticket: ticket)))
        world.run(until: .seconds(3600))
        #expect(world.machine.state(of: "d2") == .ready)
        #expect(!world.remedies.contains { $0.step != .restartDiscovery }, "\(world.remedies)")
    }
}
