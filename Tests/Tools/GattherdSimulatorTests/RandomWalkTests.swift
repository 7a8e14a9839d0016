import GattherdDBus
import GattherdMachines
import Testing

@testable import GattherdSimulator

/// Thousands of random steps with invariants after each.
@Suite struct RandomWalkTests {
    private static let yaml = """
        adapters: [{name: hci0, slots: 2}, {name: hci1}]
        peripherals:
          - {name: p, address: 'C0:FF:EE:00:00:01', kind: heart-rate, battery: 3, count: 2, rate: 5, lost_tail: 3}
          - name: lock
            address: C0:FF:EE:00:00:03
            kind: custom
            passkey: 7
            services:
              - uuid: fff0
                characteristics:
                  - {uuid: fff1, properties: [read, write, notify], encrypted: true}
                  - {uuid: fff2, properties: [write-without-response]}
          - {name: beacon, address: 'C0:FF:EE:00:00:04', kind: custom, advertise: {connectable: false, flags: false}}
        """

    private static let site = """
        air: {seed: 3, noise: 6, bodies: {attenuation: 15, share: 0.3, stay: 2s}}
        gateways:
          - {name: west, at: [0, 0], adapters: [{slots: 1}, {}]}
          - {name: east, at: [30, 0]}
        peripherals:
          - name: p
            address: C0:FF:EE:00:00:01
            kind: heart-rate
            battery: 3
            count: 2
            rate: 5
            path: {0s: [0, 1], 20s: [30, 1], 40s: [60, 1], 80s: [0, 1]}
          - {name: lock, address: 'C0:FF:EE:00:00:03', kind: heart-rate, at: [15, 0], lost_tail: 2}
          - {name: beacon, address: 'C0:FF:EE:00:00:04', kind: beacon, at: [10, 0]}
        """

    @Test(arguments: 0..<40)
    func `random events keep both sides consistent and end each call and socket once`(seed: UInt64) throws {
        var walk = Walk(try Bench(Self.yaml), SplitMix64(seed: seed))
        for _ in 0..<600 {
            let lines = walk.step()
            try walk.check(lines)
        }
    }

    @Test(arguments: 0..<8)
    func `random events at gateways with a walking peripheral keep all sides consistent`(seed: UInt64) throws {
        var walk = Walk(try Bench(Self.site), SplitMix64(seed: seed))
        for _ in 0..<300 {
            let lines = walk.step()
            try walk.check(lines)
        }
    }
}

private struct Walk {
    private var bench: Bench
    private var random: SplitMix64
    private var answered: Set<Substring> = []
    private var open: Set<Substring> = []
    /// Adapters that have hung since they last had no links.
    ///
    /// Their host may assume links that have ended.
    private var staleHosts: Set<Int> = []

    init(_ bench: Bench, _ random: SplitMix64) {
        self.bench = bench
        self.random = random
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &random)]
    }

    mutating func step() -> [String] {
        if bench.site.gateways.count > 1 { bench.gateway = pick(Array(bench.site.gateways.indices)) }
        let client = pick([":1.1", ":1.2"])
        switch Int.random(in: 0..<40, using: &random) {
        case 0...7: return bench.wait(pick([.milliseconds(5), .milliseconds(50), .milliseconds(400), .seconds(1)]))
        case 8: return bench.wait(.seconds(31))
        case 9...12: return (try? bench.order(peripheralEvent())) ?? []
        case 13: return (try? bench.order(hostEvent())) ?? []
        case 14: return bench.leave(client)
        case 15...17: return bench.answer(pick([true, true, false]), passkey: pick([7, 7, 8]))
        case 18: return bench.closeReader()
        case 19: return bench.write(pick([[], [1]]))
        default: return call(client)
        }
    }

    /// A random event of a peripheral.
    private mutating func peripheralEvent() -> SimulatorOrder {
        let name = pick(["p-1", "p-2", "lock", "beacon"])
        return pick([
            .drop(name), .vanish(name), .appear(name), .appear(name), .burst(name, 5), .forget(name),
            .silence(name, .all), .silence(name, .off), .changeServices(name, without: []), .refuse(name, times: 1),
            .advertise(name, false), .advertise(name, true), .slow(name, .seconds(1)), .slow(name, .zero),
        ])
    }

    /// A random event of the host, which ends many links or restores the host.
    private mutating func hostEvent() -> SimulatorOrder {
        let adapter = pick(["hci0", "hci1"])
        return pick([
            .setPowered(adapter: adapter, false), .unplug(adapter: adapter), .hang(adapter: adapter, true),
            .setPowered(adapter: adapter, true), .plug(adapter: adapter), .hang(adapter: adapter, false),
            .restartDaemon(isGraceful: pick([true, false]), downtime: .seconds(1)),
        ])
    }

    private mutating func call(_ client: String) -> [String] {
        guard let path = bench.objects.all.map(\.path).randomElement(using: &random),
            let node = bench.objects[path]
        else { return [] }
        guard let (member, arguments) = call(of: node) else { return [] }
        return bench.call(path, member, arguments, from: client)
    }

    private mutating func call(of node: Node) -> (String, [DBusValue])? {
        let options = DBusValue.properties([Property]())
        let filter = DBusValue.properties([Property("Transport", .string("le"))])
        let agent = DBusValue.objectPath("/agent")
        switch node {
        case .root, .service: return nil
        case .bluez:
            let capability = DBusValue.string(pick(["KeyboardOnly", "NoInputNoOutput"]))
            return pick([("RegisterAgent", [agent, capability]), ("UnregisterAgent", [agent])])
        case .adapter:
            return pick([
                ("StartDiscovery", []), ("StartDiscovery", []), ("StopDiscovery", []),
                ("SetDiscoveryFilter", [filter]), ("RemoveDevice", [.objectPath(Bench.device)]),
            ])
        case .device:
            return pick([("Connect", []), ("Connect", []), ("Disconnect", []), ("Pair", []), ("CancelPairing", [])])
        case .characteristic:
            return pick([
                ("ReadValue", [options]), ("WriteValue", [.bytes([1]), options]), ("StartNotify", []),
                ("StopNotify", []), ("AcquireNotify", [options]), ("AcquireWrite", [options]),
            ])
        case .descriptor: return ("ReadValue", [options])
        }
    }

    /// Checks the invariants after a step with the effects `lines`.
    mutating func check(_ lines: [String]) throws {
        for line in lines {
            let words = line.split(separator: " ")
            try check(words.first?.hasSuffix(":") == true ? Array(words.dropFirst()) : words)
        }
        let connected = bench.site.gateways.flatMap { gateway in
            gateway.world.devices.values.filter(\.isConnected).map(\.key)
        }
        for gateway in bench.site.gateways { try check(gateway, connected) }
        for (index, peripheral) in bench.bluetoothd.world.air.peripherals.enumerated() {
            let believed = connected.filter { $0.peripheral == index }
            try #require(peripheral.link.map(believed.contains) ?? true)
            // After a crash the kernel's links are shown for a while, but nothing is transferred over them.
            let held = believed.filter { $0.adapter != peripheral.abandonedBy && !staleHosts.contains($0.adapter) }
            try #require(held.allSatisfy { $0 == peripheral.link })
        }
    }

    private mutating func check(_ gateway: VirtualBlueZ, _ connected: [DeviceKey]) throws {
        let (world, components) = (gateway.world, gateway.components)
        for (index, adapter) in zip(world.adapters.indices, world.adapters) {
            if adapter.isHung { staleHosts.insert(index) }
            if !connected.contains(where: { $0.adapter == index }) { staleHosts.remove(index) }
        }
        for (index, peripheral) in world.air.peripherals.enumerated() {
            let hasLink = peripheral.link.map { world.adapters.indices.contains($0.adapter) } ?? false
            try #require(hasLink || !components.notifications.isBuffering(index))
        }
        try #require(world.devices.values.allSatisfy { components.objects[$0.path] == .device($0.key) })
        try #require(components.requests.all.allSatisfy { world.devices[$0.key]?.isConnected == true })
    }

    private mutating func check(_ words: [Substring]) throws {
        guard words.count > 1 else { return }
        switch words[0] {
        case "reply", "fail": try #require(answered.insert(words[1]).inserted, "answered twice: \(words)")
        case "socket":
            try #require(open.insert(words[1]).inserted && answered.insert(words[3]).inserted, "\(words)")
        case "send": try #require(open.contains(words[1]), "sent to a closed socket")
        case "close": try #require(open.remove(words[1]) != nil, "closed twice")
        default: break
        }
    }
}
