import GattherdDBus
import Testing

@testable import GattherdSimulator

@Suite struct ConnectingTests {
    private static let dev = "dev_C0_FF_EE_00_00_01"

    @Test func `Connect signals Connected, the reply, the objects, ServicesResolved and the battery in this order`()
        throws
    {
        var bench = try Bench(kind: "number-service", ", battery: 81")
        bench.scan()
        #expect(bench.call(Bench.device, "Connect") == [])
        #expect(
            bench.wait(.milliseconds(100)) == ["(connected hci0)", "\(Self.dev) Connected=true", "reply 2"]
        )
        #expect(
            bench.wait(.milliseconds(30)) == [
                "+service000a GattService1", "+char000b GattCharacteristic1", "+desc000d GattDescriptor1",
                "+desc000e GattDescriptor1", "+desc000f GattDescriptor1", "+service0010 GattService1",
                "+char0011 GattCharacteristic1", "+desc0013 GattDescriptor1",
                "\(Self.dev) UUIDs=[180f,7a4bbfe6-999f-4717-b63a-066e06971f59] ServicesResolved=true",
                "+\(Self.dev) Battery1",
            ]
        )
    }

    @Test func `a reconnection reuses the GATT objects`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        #expect(
            try bench.order(.drop("p")) == [
                "(disconnected remote)", "\(Self.dev) ServicesResolved=false Connected=false",
            ]
        )
        bench.call(Bench.device, "Connect")
        let lines = bench.wait(.milliseconds(200))
        #expect(lines.contains("\(Self.dev) Connected=true"))
        #expect(lines.contains { $0.hasSuffix("ServicesResolved=true") })
        #expect(!lines.contains { $0.hasPrefix("+") })
    }

    @Test func `Connect to an absent peripheral fails after 40 s`() throws {
        var bench = try Bench(kind: "number-service")
        bench.scan()
        try bench.order(.vanish("p"))
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(39.9)) == [])
        #expect(bench.wait(.seconds(0.2)) == ["fail 2 Failed: le-connection-abort-by-local"])
    }

    @Test func `a peripheral that appears during an attempt is connected`() throws {
        var bench = try Bench(kind: "number-service")
        bench.scan()
        try bench.order(.vanish("p"))
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(20))
        try bench.order(.appear("p"))
        #expect(bench.wait(.seconds(1)).contains("reply 2"))
    }

    @Test func `a second Connect fails while the first is pending, and Disconnect cancels the first`() throws {
        var bench = try Bench(kind: "number-service")
        bench.scan()
        bench.call(Bench.device, "Connect")
        #expect(bench.call(Bench.device, "Connect") == ["fail 3 Failed: Operation already in progress"])
        #expect(bench.call(Bench.device, "Disconnect") == ["fail 2 Failed: br-connection-canceled", "reply 4"])
        #expect(!bench.wait(.seconds(60)).contains { $0.contains("Connected=") })
    }

    @Test func `Connect when connected and Disconnect when not connected succeed at once`() throws {
        var bench = try Bench(kind: "number-service")
        bench.scan()
        #expect(bench.call(Bench.device, "Disconnect") == ["reply 2"])
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(1))
        #expect(bench.call(Bench.device, "Connect") == ["reply 4"])
    }

    @Test func `Disconnect is answered when the link is down, after the scenario's delay`() throws {
        var bench = try Bench(
            "timing: {disconnect: 3s}\nperipherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery}]"
        )
        bench.connect()
        #expect(bench.call(Bench.device, "Disconnect") == ["-\(Self.dev) Battery1"])
        #expect(bench.wait(.seconds(2.9)) == [])
        #expect(
            bench.wait(.seconds(0.2)).prefix(4) == [
                "(disconnected local)", "\(Self.dev) ServicesResolved=false", "\(Self.dev) Connected=false",
                "reply 3",
            ]
        )
    }

    @Test func `a failed attempt signals Connected briefly`() throws {
        var bench = try Bench(kind: "battery", ", connect_failures: 2")
        bench.scan()
        for call in 2...3 {
            bench.call(Bench.device, "Connect")
            #expect(
                bench.wait(.milliseconds(100)).filter { !$0.contains("RSSI") } == [
                    "(connected hci0)", "\(Self.dev) Connected=true", "(disconnected remote)",
                    "\(Self.dev) Connected=false",
                    "fail \(call) Failed: le-connection-abort-by-local",
                ]
            )
        }
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.milliseconds(100)).contains("reply 4"))
    }

    @Test func `Connected can become true without a signal`() throws {
        var bench = try Bench(kind: "battery", ", signals_connected: false")
        bench.scan()
        bench.call(Bench.device, "Connect")
        let lines = bench.wait(.milliseconds(200))
        #expect(lines.contains("reply 2"))
        #expect(!lines.contains { $0.contains(" Connected=") })
        #expect(
            bench.call(Bench.device, "Get", .string(InterfaceName.device), .string("Connected")) == ["reply 3 true"]
        )
    }

    @Test func `an adapter makes one link at a time, up to its number of slots`() throws {
        var bench = try Bench(
            """
            adapters: [{slots: 2}]
            peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery, count: 3}]
            """
        )
        bench.scan()
        for number in 1...3 { bench.call("/org/bluez/hci0/dev_C0_FF_EE_00_00_0\(number)", "Connect") }
        #expect(bench.wait(.milliseconds(100)).contains("reply 2"))
        #expect(bench.wait(.milliseconds(100)).contains("reply 3"))
        #expect(bench.wait(.milliseconds(100)).contains("fail 4 Failed: le-connection-abort-by-local"))
    }

    @Test func `Connect with the adapter off fails with Input/output error`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        try bench.order(.setPowered(adapter: "hci0", false))
        #expect(bench.call(Bench.device, "Connect") == ["fail 3 Failed: Input/output error"])
    }

    @Test func `a short loss of radio contact is invisible`() throws {
        var bench = try Bench(kind: "heart-rate", ", rate: 10")
        bench.connect()
        try bench.order(.vanish("p"))
        #expect(bench.wait(.milliseconds(400)) == [])
        try bench.order(.appear("p"))
        let lines = bench.wait(.seconds(1))
        #expect(lines.count == 10)
        #expect(lines.allSatisfy { $0.hasPrefix("(2a37 #") })
    }

    @Test func `a radio loss beyond the supervision timeout ends the link`() throws {
        var bench = try Bench(kind: "heart-rate")
        bench.connect()
        try bench.order(.vanish("p"))
        #expect(bench.wait(.milliseconds(430)).contains("(disconnected timeout)"))
    }

    @Test func `each loss of radio contact has the whole supervision timeout`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        for _ in 0..<3 {
            try bench.order(.vanish("p"))
            #expect(bench.wait(.milliseconds(300)) == [])
            try bench.order(.appear("p"))
            #expect(bench.wait(.milliseconds(50)) == [])
        }
        try bench.order(.vanish("p"))
        #expect(bench.wait(.milliseconds(300)) == [])
        try bench.order(.vanish("p"))
        #expect(bench.wait(.milliseconds(130)).contains("(disconnected timeout)"))
    }

    @Test func `changed services move and lose their subscriptions`() throws {
        var bench = try Bench(kind: "heart-rate", ", battery: 50")
        bench.connect()
        bench.call(try bench.characteristic(0), "StartNotify")
        bench.wait(.milliseconds(10))
        try bench.order(.changeServices("p", without: [.batteryService]))
        let lines = bench.wait(.milliseconds(50))
        #expect(lines.contains("-char000b GattCharacteristic1"))
        #expect(lines.contains("+char004b GattCharacteristic1"))
        #expect(lines.last == "\(Self.dev) UUIDs=[180d]")
        #expect(!lines.contains { $0.contains("ServicesResolved") })
        #expect(bench.wait(.seconds(2)).allSatisfy { $0.hasSuffix("lost)") })
    }

    @Test func `hidden services are removed and the others keep their objects and subscriptions`() throws {
        var bench = try Bench(kind: "heart-rate", ", battery: 50")
        bench.connect()
        bench.call(try bench.characteristic(0), "StartNotify")
        bench.wait(.milliseconds(10))
        try bench.order(.hideServices("p", [.batteryService]))
        let gone = bench.wait(.milliseconds(50))
        #expect(gone.last == "\(Self.dev) UUIDs=[180d]")
        #expect(!gone.contains { $0.contains("char000b") || $0.hasPrefix("+") })
        try bench.order(.hideServices("p", []))
        let back = bench.wait(.milliseconds(50))
        #expect(back.last == "\(Self.dev) UUIDs=[180d,180f]")
        #expect(!back.contains { $0.contains("char000b") || $0.hasPrefix("-") })
        #expect(bench.wait(.seconds(2)).contains { $0.contains("notified") || $0.contains("Value") })
    }

    @Test func `every second change removes the old objects before it adds the new ones`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        for (old, new, tellsNewFirst) in [("000b", "004b", true), ("004b", "008b", false), ("008b", "00cb", true)] {
            try bench.order(.changeServices("p", without: []))
            let lines = bench.wait(.milliseconds(50))
            let added = try #require(lines.firstIndex(of: "+char\(new) GattCharacteristic1"))
            let removed = try #require(lines.firstIndex(of: "-char\(old) GattCharacteristic1"))
            #expect((added < removed) == tellsNewFirst)
        }
    }

    @Test func `a silent peripheral is resolved after 30 s and disconnected 2 s later`() throws {
        var bench = try Bench(kind: "battery")
        bench.scan()
        try bench.order(.silence("p", .all))
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).contains("reply 2"))
        #expect(bench.wait(.seconds(29.5)).contains { $0.hasSuffix("ServicesResolved=true") })
        #expect(bench.wait(.seconds(2)).contains("(disconnected unanswered)"))
    }

    @Test func `Connect to a non-connectable peripheral fails after 40 s`() throws {
        var bench = try Bench(kind: "battery", ", advertise: {connectable: false}")
        bench.scan()
        bench.call(Bench.device, "Connect")
        #expect(!bench.wait(.seconds(39.9)).contains { $0.contains("fail") })
        #expect(bench.wait(.seconds(0.2)).contains("fail 2 Failed: le-connection-abort-by-local"))
    }

    private static let pair = """
        peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: battery, count: 2}]
        """
    private static let second = "/org/bluez/hci0/dev_C0_FF_EE_00_00_02"

    @Test func `an attempt at an absent device delays neither other links nor scans`() throws {
        var bench = try Bench(Self.pair)
        bench.scan()
        try bench.order(.vanish("p-1"))
        bench.call(Bench.device, "Connect")
        bench.call(Self.second, "Connect")
        #expect(bench.wait(.milliseconds(200)).contains("reply 3"))
        #expect(bench.get(Bench.adapter, "Discovering") == "true")
        #expect(bench.call(Bench.adapter, "StartDiscovery", from: ":1.2") == ["reply 5"])
    }

    @Test func `an attempt continues after its client has left`() throws {
        var bench = try Bench(kind: "battery")
        bench.call(Bench.adapter, "StartDiscovery", from: ":1.2")
        bench.wait(.seconds(1))
        try bench.order(.vanish("p"))
        bench.call(Bench.device, "Connect")
        bench.leave(":1.1")
        bench.wait(.seconds(10))
        try bench.order(.appear("p"))
        #expect(bench.wait(.milliseconds(100)).contains("\(Self.dev) Connected=true"))
    }

    @Test func `Connect right after Disconnect works, and several devices disconnect in parallel`() throws {
        var bench = try Bench(Self.pair)
        bench.connect()
        bench.call(Self.second, "Connect")
        bench.wait(.seconds(1))
        bench.call(Bench.device, "Disconnect")
        bench.call(Self.second, "Disconnect")
        let lines = bench.wait(.seconds(2))
        #expect(lines.contains("reply 4"))
        #expect(lines.contains("reply 5"))
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.milliseconds(200)).contains("reply 6"))
    }

    @Test func `a temporary device without a free slot is removed`() throws {
        var bench = try Bench("adapters: [{slots: 1}]\n" + Self.pair)
        bench.connect()
        bench.call(Self.second, "Connect")
        #expect(bench.wait(.milliseconds(101)).last == "fail 3 Failed: le-connection-abort-by-local")
        #expect(bench.wait(.milliseconds(2)) == ["-dev_C0_FF_EE_00_00_02 Device1"])
    }

    @Test func `the order refuse ends the next links right after they are made`() throws {
        var bench = try Bench(kind: "battery")
        bench.scan()
        try bench.order(.refuse("p", times: 1))
        bench.call(Bench.device, "Connect")
        let lines = bench.wait(.milliseconds(100))
        #expect(lines.contains("(disconnected remote)"))
        #expect(lines.contains("fail 2 Failed: le-connection-abort-by-local"))
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.milliseconds(100)).contains("reply 3"))
    }

    @Test func `a slow peripheral resolves 15 responses after Connect, and 8 the next time`()
        throws
    {
        var bench = try Bench(kind: "battery")
        bench.scan()
        try bench.order(.slow("p", .seconds(1)))
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.milliseconds(101)).contains("reply 2"))
        #expect(!bench.wait(.seconds(15)).contains { $0.contains("ServicesResolved") })
        #expect(bench.wait(.milliseconds(30)).contains { $0.contains("ServicesResolved=true") })
        bench.call(Bench.adapter, "RemoveDevice", .objectPath(Bench.device))
        bench.wait(.seconds(3))
        bench.call(Bench.device, "Connect")
        bench.wait(.milliseconds(100))
        #expect(!bench.wait(.seconds(8)).contains { $0.contains("ServicesResolved") })
        #expect(bench.wait(.milliseconds(15)).contains { $0.contains("ServicesResolved=true") })
    }

    @Test func `objects of the last connection are usable before ServicesResolved`() throws {
        var bench = try Bench(kind: "number-service", ", value: 42")
        bench.connect()
        try bench.order(.drop("p"))
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.milliseconds(100)).contains("reply 3"))
        bench.call(try bench.characteristic(0), "ReadValue", .properties([Property]()))
        #expect(bench.wait(.milliseconds(2)).last == "reply 4 2a")
        #expect(bench.wait(.milliseconds(20)).contains { $0.contains("ServicesResolved=true") })
    }

    @Test func `a blocked device loses its link, and Connect to it fails after 40 s`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        let blocked = DBusValue.variant(.boolean(true))
        let lines = bench.call(Bench.device, "Set", .string(InterfaceName.device), .string("Blocked"), blocked)
        #expect(
            lines == [
                "\(Self.dev) Blocked=true", "(disconnected blocked)",
                "\(Self.dev) ServicesResolved=false Connected=false", "-\(Self.dev) Battery1", "reply 3",
            ]
        )
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(41)).contains("fail 4 Failed: le-connection-abort-by-local"))
    }

    @Test func `a hung controller neither connects nor scans until it answers again`() throws {
        var bench = try Bench(kind: "battery")
        bench.scan()
        bench.call(Bench.adapter, "StopDiscovery")
        try bench.order(.hang(adapter: "hci0", true))
        bench.call(Bench.adapter, "StartDiscovery")
        #expect(bench.wait(.seconds(4)) == [])
        #expect(bench.wait(.seconds(0.1)) == ["fail 3 InProgress: Operation already in progress"])
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(40)).last == "fail 4 Failed: le-connection-abort-by-local")
        try bench.order(.hang(adapter: "hci0", false))
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(1)).contains("reply 5"))
    }
}
