import GattherdDBus
import Testing

@testable import GattherdSimulator

@Suite struct PowerTests {
    private static let dev = "dev_C0_FF_EE_00_00_01"

    @Test func `power off ends links, scans and attempts and keeps objects`() throws {
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

    @Test func `a client can set Powered`() throws {
        var bench = try Bench(kind: "battery")
        let value = DBusValue.variant(.boolean(false))
        let lines = bench.call(Bench.adapter, "Set", .string(InterfaceName.adapter), .string("Powered"), value)
        #expect(lines == ["hci0 Powered=false Discovering=false", "reply 1"])
    }

    @Test func `unplugging removes all objects, and plugging restores the adapter and connected devices`() throws {
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

    @Test func `a crash of bluetoothd sends no signals and a graceful end sends all of them`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        #expect(
            try bench.order(.restartDaemon(isGraceful: false, downtime: .seconds(2))) == ["stop"]
        )
        #expect(bench.call(Bench.adapter, "StartDiscovery").first?.contains("UnknownObject") == true)
        #expect(bench.wait(.seconds(2)) == ["start"])
        bench.call(Bench.device, "Connect")
        // The kernel still has the link, so Connect changes nothing.
        #expect(bench.wait(.milliseconds(249)) == ["+hci0 Adapter1", "+\(Self.dev) Device1", "reply 4"])
        #expect(bench.wait(.milliseconds(1)) == ["(disconnected daemon)", "\(Self.dev) Connected=false"])
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).contains("+char000b GattCharacteristic1"))
        let lines = try bench.order(.restartDaemon(isGraceful: true, downtime: .seconds(2)))
        #expect(lines.contains("\(Self.dev) ServicesResolved=false Connected=false"))
        #expect(lines.suffix(3) == ["-\(Self.dev) Device1", "-hci0 Adapter1", "stop"])
    }

    @Test func `Connect uses a link that the kernel kept after a crash`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        try bench.order(.keepLink("p"))
        try bench.order(.restartDaemon(isGraceful: false, downtime: .seconds(1)))
        bench.wait(.seconds(4))
        #expect(bench.get(Bench.device, "Connected") == "true")
        #expect(bench.get(Bench.device, "ServicesResolved") == "false")
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).contains("+char000b GattCharacteristic1"))
    }

    @Test func `a link end during a controller hang stays unnoticed until the next request`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        try bench.order(.hang(adapter: "hci0", true))
        #expect(try bench.order(.drop("p")) == ["(disconnected remote)"])
        try bench.order(.hang(adapter: "hci0", false))
        bench.wait(.seconds(60))
        #expect(bench.get(Bench.device, "Connected") == "true")
        bench.call(Bench.device, "Disconnect")
        #expect(bench.wait(.seconds(5)).contains("\(Self.dev) Connected=false"))
    }

    @Test func `a restart ends all sessions, scans and agents`() throws {
        var bench = try Bench(kind: "heart-rate", ", rate: 10")
        bench.connect()
        bench.call(try bench.characteristic(0), "StartNotify")
        bench.wait(.seconds(1))
        try bench.order(.restartDaemon(isGraceful: false, downtime: .seconds(1)))
        bench.wait(.seconds(3))
        #expect(bench.call(Bench.adapter, "StopDiscovery") == ["fail 4 Failed: No discovery started"])
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).filter { $0.hasPrefix("(2a37") }.allSatisfy { $0.hasSuffix("lost)") })
    }

    @Test func `power off removes temporary devices`() throws {
        var bench = try Bench(
            "peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery, count: 2}]"
        )
        bench.connect()
        let lines = try bench.order(.setPowered(adapter: "hci0", false))
        #expect(lines.first == "-dev_C0_FF_EE_00_00_02 Device1")
        #expect(!lines.contains("-\(Self.dev) Device1"))
    }

    @Test func `StartNotify sessions survive power off and sockets do not`() throws {
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

    @Test func `trusted and paired devices survive a restart and temporary devices do not`() throws {
        var bench = try Bench(
            "peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery, count: 2}]"
        )
        bench.scan()
        bench.call(Bench.device, "Set", .string(InterfaceName.device), .string("Trusted"), .variant(.boolean(true)))
        bench.call(Bench.adapter, "StopDiscovery")
        try bench.order(.restartDaemon(isGraceful: true, downtime: .seconds(1)))
        bench.wait(.seconds(2))
        #expect(bench.get(Bench.device, "Trusted") == "true")
        #expect(bench.objects["/org/bluez/hci0/dev_C0_FF_EE_00_00_02"] == nil)
    }

    @Test(arguments: [true, false])
    func `bluetoothd takes its name before it exports objects, and answers early calls later`(isGraceful: Bool) throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        try bench.order(.restartDaemon(isGraceful: isGraceful, downtime: .seconds(1)))
        #expect(bench.wait(.seconds(1)) == ["start"])
        #expect(bench.call("/", "GetManagedObjects") == [])
        let shown = ["+hci0 Adapter1", "+\(Self.dev) Device1", "reply 3 …"]
        #expect(bench.wait(.milliseconds(50)) == shown + (isGraceful ? ["hci0 Powered=true"] : []))
    }

    @Test func `a new adapter is exported before it is powered`() throws {
        var bench = try Bench("adapters: [{name: hci0, present: false}]")
        #expect(bench.objects.all.map(\.path) == ["/", "/org/bluez"])
        #expect(try bench.order(.plug(adapter: "hci0")) == ["+hci0 Adapter1", "hci0 Powered=true"])
    }

    @Test func `a peripheral has at most one link across all adapters`() throws {
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
}
