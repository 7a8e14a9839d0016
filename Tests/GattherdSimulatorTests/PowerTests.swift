import GattherdDBus
import Testing

@testable import GattherdSimulator

@Suite struct PowerTests {
    private static let dev = "dev_C0_FF_EE_00_00_01"

    @Test func `Power off ends links, scans and attempts, but no objects`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        #expect(
            try bench.order(.setPowered(adapter: "hci0", false)) == [
                "(disconnected power-off)", "\(Self.dev) ServicesResolved=false Connected=false",
                "\(Self.dev) -RSSI", "hci0 Powered=false Discovering=false",
            ]
        )
        #expect(try bench.order(.setPowered(adapter: "hci0", true)) == ["hci0 Powered=true"])
        #expect(bench.wait(.seconds(1)) == [])
        #expect(bench.call(Bench.adapter, "StartDiscovery").last == "reply 3")
    }

    @Test func `A client can switch the power`() throws {
        var bench = try Bench(kind: "battery")
        let value = DBusValue.variant(.boolean(false))
        let lines = bench.call(Bench.adapter, "Set", .string(InterfaceName.adapter), .string("Powered"), value)
        #expect(lines == ["hci0 Powered=false", "reply 1"])
    }

    @Test func `Unplugged, everything goes; plugged in, the adapter and what was connected come back`() throws {
        var bench = try Bench(
            "peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery, count: 2}]"
        )
        bench.connect()
        let lines = try bench.order(.unplug(adapter: "hci0"))
        #expect(lines.contains("(disconnected unplugged)"))
        #expect(lines.first == "-dev_C0_FF_EE_00_00_02 Device1")
        #expect(lines.suffix(2) == ["-\(Self.dev) Device1", "-hci0 Adapter1"])
        #expect(bench.call(Bench.adapter, "StartDiscovery").first?.contains("UnknownObject") == true)
        #expect(
            try bench.order(.plug(adapter: "hci0")) == [
                "+hci0 Adapter1", "+\(Self.dev) Device1", "hci0 Powered=true",
            ]
        )
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).contains("reply 4"))
    }

    @Test func `A crash of the daemon is silent; a good end tells everything`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        #expect(
            try bench.order(.restartDaemon(isGraceful: false, downtime: .seconds(2))) == ["stop"]
        )
        #expect(bench.call(Bench.adapter, "StartDiscovery").first?.contains("UnknownObject") == true)
        #expect(bench.wait(.seconds(2)) == ["start"])
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.milliseconds(249)) == [])
        #expect(bench.wait(.milliseconds(1)) == ["(disconnected daemon)"])
        #expect(bench.wait(.seconds(1)).contains("+char000b GattCharacteristic1"))
        let lines = try bench.order(.restartDaemon(isGraceful: true, downtime: .seconds(2)))
        #expect(lines.contains("\(Self.dev) ServicesResolved=false Connected=false"))
        #expect(lines.suffix(3) == ["-\(Self.dev) Device1", "-hci0 Adapter1", "stop"])
    }

    @Test func `After a restart no session, scan or agent is left`() throws {
        var bench = try Bench(kind: "heart-rate", ", rate: 10")
        bench.connect()
        bench.call(try bench.characteristic(0), "StartNotify")
        bench.wait(.seconds(1))
        try bench.order(.restartDaemon(isGraceful: false, downtime: .seconds(1)))
        bench.wait(.seconds(2))
        #expect(bench.call(Bench.adapter, "StopDiscovery") == ["fail 4 Failed: No discovery started"])
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).filter { $0.hasPrefix("(2a37") }.allSatisfy { $0.hasSuffix("lost)") })
    }

    @Test func `Power off removes what is only known`() throws {
        var bench = try Bench(
            "peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery, count: 2}]"
        )
        bench.connect()
        let lines = try bench.order(.setPowered(adapter: "hci0", false))
        #expect(lines.first == "-dev_C0_FF_EE_00_00_02 Device1")
        #expect(!lines.contains("-\(Self.dev) Device1"))
    }

    @Test func `Sessions of StartNotify outlive the power, sockets do not`() throws {
        for member in ["StartNotify", "AcquireNotify"] {
            var bench = try Bench(kind: "heart-rate", ", rate: 10")
            bench.connect()
            let path = try bench.characteristic(0)
            bench.call(path, member, member == "StartNotify" ? [] : [.properties([Property]())])
            bench.wait(.seconds(1))
            try bench.order(.setPowered(adapter: "hci0", false))
            try bench.order(.setPowered(adapter: "hci0", true))
            bench.call(Bench.device, "Connect")
            #expect(bench.wait(.seconds(1)).contains("(subscribed)") == (member == "StartNotify"))
        }
    }

    @Test func `What was trusted or paired is there after a restart, what was only known is not`() throws {
        var bench = try Bench(
            "peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery, count: 2}]"
        )
        bench.scan()
        bench.call(Bench.device, "Set", .string(InterfaceName.device), .string("Trusted"), .variant(.boolean(true)))
        bench.call(Bench.adapter, "StopDiscovery")
        try bench.order(.restartDaemon(isGraceful: true, downtime: .seconds(1)))
        bench.wait(.seconds(1))
        #expect(bench.get(Bench.device, "Trusted") == "true")
        #expect(bench.world.nodes["/org/bluez/hci0/dev_C0_FF_EE_00_00_02"] == nil)
    }

    @Test func `An adapter that comes is shown before it is powered`() throws {
        var bench = try Bench("adapters: [{name: hci0, present: false}]")
        #expect(bench.world.nodes.keys.sorted() == ["/", "/org/bluez"])
        #expect(try bench.order(.plug(adapter: "hci0")) == ["+hci0 Adapter1", "hci0 Powered=true"])
    }

    @Test func `A peripheral has one link, whichever adapter holds it`() throws {
        var bench = try Bench(
            """
            adapters: [{name: hci0}, {name: hci1}]
            peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery}]
            """
        )
        bench.scan()
        bench.scan("/org/bluez/hci1")
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(1))
        bench.call("/org/bluez/hci1/\(Self.dev)", "Connect")
        #expect(bench.wait(.seconds(5)) == [])
        try bench.order(.drop("p"))
        #expect(bench.wait(.seconds(1)).contains("reply 4"))
    }

    @Test func `Whatever happens, links are known alike on both sides`() throws {
        var random = SplitMix(state: 11)
        for _ in 0..<40 {
            var bench = try Bench(
                """
                adapters: [{name: hci0, slots: 2}, {name: hci1}]
                peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: heart-rate, battery: 3, count: 4, rate: 5}]
                """
            )
            for _ in 0..<150 {
                randomStep(&bench, &random)
                let world = bench.world
                for (index, peripheral) in world.peripherals.enumerated() {
                    let holders = world.devices.values.filter { $0.key.peripheral == index && $0.isConnected }
                    try #require(holders.map(\.key) == (peripheral.link.map { [$0] } ?? []))
                }
                try #require(world.devices.values.allSatisfy { world.nodes[$0.path] == .device($0.key) })
            }
        }
    }

    private func randomStep(_ bench: inout Bench, _ random: inout SplitMix) {
        func pick<Element>(_ elements: [Element]) -> Element {
            elements[Int.random(in: elements.indices, using: &random)]
        }
        let client = pick([":1.1", ":1.2"])
        let name = "p-\(Int.random(in: 1...4, using: &random))"
        let adapter = pick(["hci0", "hci1"])
        let paths = bench.world.nodes.keys.sorted()
        let members = [
            "StartDiscovery", "StopDiscovery", "Connect", "Connect", "Disconnect", "Pair", "ReadValue", "StartNotify",
            "StopNotify", "AcquireNotify",
        ]
        switch Int.random(in: 0..<14, using: &random) {
        case 0: bench.wait(pick([.milliseconds(50), .seconds(1), .seconds(31)]))
        case 1: _ = try? bench.order(.drop(name))
        case 2: _ = try? bench.order(.vanish(name))
        case 3: _ = try? bench.order(.appear(name))
        case 4: _ = try? bench.order(.setPowered(adapter: adapter, Bool.random(using: &random)))
        case 5: _ = try? bench.order(pick([.unplug(adapter: adapter), .plug(adapter: adapter)]))
        case 6: _ = try? bench.order(.restartDaemon(isGraceful: Bool.random(using: &random), downtime: .seconds(1)))
        case 7: bench.leave(client)
        case 8: _ = try? bench.order(.changeServices(name, without: []))
        case 9: _ = try? bench.order(.silence(name, pick([.off, .all])))
        default: if let path = paths.randomElement(using: &random) { bench.call(path, pick(members), from: client) }
        }
    }
}

/// Vigna's SplitMix64: the same steps in each run.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
