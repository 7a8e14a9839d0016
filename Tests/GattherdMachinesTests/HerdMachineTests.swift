import GattherdGATT
import GattherdMachines
import GattherdModel
import Testing

/// A little world around a herd machine: it answers what the machine asks for, in virtual time.
struct HerdWorld {
    var machine: HerdMachine
    var now = Duration.zero
    var random: SplitMix64
    /// What is due, and when.
    var agenda: [(due: Duration, event: HerdMachine.Event)] = []
    var scanning: Set<BluetoothAddress> = []
    var connecting: [String: Duration] = [:]
    var up: Set<String> = []
    var readyCount: [String: Int] = [:]
    var sessions: Set<String> = []
    /// How likely each operation fails.
    var failureRate = 0.0
    var problems: [String] = []
    let adapter: BluetoothAddress
    let names: [String]

    init(devices count: Int, seed: UInt64, held: Set<String> = []) throws {
        names = (1...count).map { "d\($0)" }
        adapter = try #require(BluetoothAddress("00:00:00:00:00:01"))
        machine = HerdMachine(devices: names, held: held, seed: seed)
        random = SplitMix64(seed: seed &+ 1)
    }

    mutating func apply(_ event: HerdMachine.Event) {
        for effect in machine.handle(event, now: now) { perform(effect) }
    }

    mutating func powerOn() {
        apply(.adapter(adapter, isPowered: true))
        sightAll()
    }

    mutating func powerOff() {
        up.removeAll()
        scanning.removeAll()
        apply(.adapter(adapter, isPowered: false))
    }

    mutating func sightAll() {
        for name in names {
            apply(.sighted(device: name, on: adapter, .init(isConnected: up.contains(name), rssi: -60)))
        }
    }

    /// Lets virtual time pass until nothing is due, at most until `end`.
    mutating func run(until end: Duration) {
        while let next = agenda.indices.min(by: { agenda[$0].due < agenda[$1].due }), agenda[next].due <= end {
            let (due, event) = agenda.remove(at: next)
            now = max(now, due)
            if case .link(let name, .connected) = event { up.insert(name) }
            apply(event)
        }
        now = end
    }

    private mutating func perform(_ effect: HerdMachine.Effect) {
        switch effect {
        case .startDiscovery(let adapter): scanning.insert(adapter)
        case .stopDiscovery(let adapter): scanning.remove(adapter)
        case .armTurn(let adapter, let delay): agenda.append((now + delay, .turn(adapter)))
        case .link(let name, _, let effect): perform(effect, name)
        }
    }

    private mutating func perform(_ effect: LinkMachine.Effect, _ name: String) {
        switch effect {
        case .connect(let ticket):
            let fault = LinkFault(.connectFailed, "abort-by-local")
            answer(name, fails: fault, ticket, after: .milliseconds(200), .connected(ticket: ticket))
        case .openSession(let ticket):
            if !sessions.insert(name).inserted { problems.append("\(name): two sessions") }
            let fault = LinkFault(.gattError, "refused")
            agenda.append((now + .milliseconds(50), .link(device: name, .discovered(ticket: ticket))))
            answer(name, fails: fault, ticket, after: .milliseconds(100), .prepared(ticket: ticket))
        case .closeSession:
            if sessions.remove(name) == nil { problems.append("\(name): no session to close") }
        case .disconnect(let ticket):
            up.remove(name)
            agenda.append((now + .milliseconds(20), .link(device: name, .disconnected(ticket: ticket))))
        case .armRetry(let delay, let ticket):
            if delay > .seconds(300) { problems.append("\(name): a pause of \(delay)") }
            agenda.append((now + delay, .link(device: name, .retryDue(ticket: ticket))))
        case .changed(let change):
            if change.to == .ready { readyCount[name, default: 0] += 1 }
        case .queue, .unqueue:
            problems.append("the queue is the herd's own business")
        }
    }

    private mutating func answer(
        _ name: String,
        fails fault: LinkFault,
        _ ticket: Int,
        after delay: Duration,
        _ success: LinkMachine.Event
    ) {
        let isFailing = Double.random(in: 0..<1, using: &random) < failureRate
        agenda.append((now + delay, .link(device: name, isFailing ? .failed(fault, ticket: ticket) : success)))
    }
}

@Suite struct HerdMachineTests {
    @Test("All devices become ready, one connect at a time, and the scan stops")
    func allReady() throws {
        var world = try HerdWorld(devices: 64, seed: 1)
        world.powerOn()
        world.run(until: .seconds(20))
        #expect(world.names.allSatisfy { world.machine.state(of: $0) == .ready })
        #expect(world.names.allSatisfy { world.readyCount[$0] == 1 })
        #expect(world.scanning.isEmpty)
        #expect(world.problems.isEmpty)
    }

    @Test("A device that nobody has seen is looked for")
    func scanning() throws {
        var world = try HerdWorld(devices: 2, seed: 1)
        world.apply(.adapter(world.adapter, isPowered: true))
        #expect(world.scanning == [world.adapter])
        world.sightAll()
        #expect(world.scanning.isEmpty)
        world.run(until: .seconds(1))
        world.apply(.dropped(device: "d1", on: world.adapter))
        world.apply(.forgotten(device: "d1", on: world.adapter))
        #expect(world.scanning == [world.adapter])
    }

    @Test("Devices that are known before their adapter are connected without a scan")
    func knownDevices() throws {
        var world = try HerdWorld(devices: 2, seed: 1)
        world.sightAll()
        let effects = world.machine.handle(.adapter(world.adapter, isPowered: true), now: .zero)
        #expect(!effects.contains(.startDiscovery(world.adapter)))
        #expect(effects.contains(.link(device: "d1", on: world.adapter, .connect(ticket: 1))))
    }

    @Test("No scan runs for a device that is held")
    func heldIsNotLookedFor() throws {
        var world = try HerdWorld(devices: 1, seed: 1, held: ["d1"])
        world.apply(.adapter(world.adapter, isPowered: true))
        #expect(world.scanning.isEmpty)
    }

    @Test("An attempt that takes long does not block the others for ever")
    func patience() throws {
        var queue = ConnectQueue(patience: .seconds(1), limit: 2)
        for name in ["a", "b", "c"] { queue.add(name) }
        #expect(queue.next(now: .zero) == "a")
        #expect(queue.next(now: .milliseconds(999)) == nil)
        #expect(queue.nextTurn(now: .milliseconds(999)) == .seconds(1))
        #expect(queue.next(now: .seconds(1)) == "b")
        #expect(queue.next(now: .seconds(3)) == nil, "two at once is the limit")
        queue.remove("a")
        #expect(queue.next(now: .seconds(3)) == "c")
    }

    @Test("bluetoothd gone and back: all ready again")
    func daemonRestart() throws {
        var world = try HerdWorld(devices: 16, seed: 3)
        world.powerOn()
        world.run(until: .seconds(10))
        world.up.removeAll()
        world.apply(.unavailable(detail: "org.bluez left the bus"))
        #expect(world.names.allSatisfy { world.machine.state(of: $0) == .disconnected })
        world.powerOn()
        world.run(until: .seconds(30))
        #expect(world.names.allSatisfy { world.machine.state(of: $0) == .ready })
        #expect(world.problems.isEmpty)
    }

    @Test("Whatever happens, in the end every device is ready once more, or held")
    func randomWalks() throws {
        for seed in 1...200 as ClosedRange<UInt64> { try randomWalk(seed: seed) }
    }

    private func randomWalk(seed: UInt64) throws {
        var world = try HerdWorld(devices: 8, seed: seed)
        var dice = SplitMix64(seed: seed)
        var held: Set<String> = []
        world.failureRate = 0.3
        world.powerOn()
        for _ in 0..<300 {
            disturb(&world, &dice, &held)
            world.run(until: world.now + .milliseconds(Int64.random(in: 0...3000, using: &dice)))
        }
        world.failureRate = 0
        world.powerOn()
        world.run(until: world.now + .seconds(400))
        for name in world.names {
            #expect(world.machine.state(of: name) == (held.contains(name) ? .held : .ready), "\(name), seed \(seed)")
        }
        #expect(world.problems.isEmpty, "seed \(seed)")
        #expect(world.sessions == Set(world.names).subtracting(held))
    }

    private func disturb(_ world: inout HerdWorld, _ dice: inout SplitMix64, _ held: inout Set<String>) {
        guard let name = world.names.randomElement(using: &dice) else { return }
        switch Int.random(in: 0..<10, using: &dice) {
        case 0: world.powerOff()
        case 1, 2: world.powerOn()
        case 3:
            world.up.removeAll()
            world.apply(.unavailable(detail: "killed"))
        case 4, 5:
            world.up.remove(name)
            world.apply(.dropped(device: name, on: world.adapter))
        case 6:
            world.up.remove(name)
            world.apply(.forgotten(device: name, on: world.adapter))
        case 7:
            held.insert(name)
            world.apply(.link(device: name, .hold))
        case 8:
            held.remove(name)
            world.apply(.link(device: name, .release))
        default: world.sightAll()
        }
    }
}
