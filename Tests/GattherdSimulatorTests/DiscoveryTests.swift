import GattherdDBus
import GattherdGATT
import Testing

@testable import GattherdSimulator

@Suite struct DiscoveryTests {
    private static let dev = "dev_C0_FF_EE_00_00_01"

    @Test func `Scanning shows what advertises, with its signal strength`() throws {
        var bench = try Bench(kind: "heart-rate", ", advertise: {name: Strap, rssi: -71}")
        #expect(bench.call(Bench.adapter, "StartDiscovery") == ["hci0 Discovering=true", "reply 1"])
        #expect(bench.wait(.milliseconds(200)) == ["+\(Self.dev) Device1"])
        let get = { (name: String) in [DBusValue.string(InterfaceName.device), .string(name)] }
        #expect(bench.call(Bench.device, "Get", get("RSSI")[0], get("RSSI")[1]) == ["reply 2 -71"])
        #expect(bench.call(Bench.device, "Get", get("Name")[0], get("Name")[1]) == ["reply 3 Strap"])
        #expect(bench.call(Bench.device, "Get", get("UUIDs")[0], get("UUIDs")[1]) == ["reply 4 [180d]"])
    }

    @Test func `What scanning is refused for`() throws {
        var bench = try Bench(kind: "battery")
        #expect(bench.call(Bench.adapter, "StopDiscovery") == ["fail 1 Failed: No discovery started"])
        bench.call(Bench.adapter, "StartDiscovery")
        #expect(bench.call(Bench.adapter, "StartDiscovery") == ["fail 3 InProgress: Operation already in progress"])
        try bench.order(.setPowered(adapter: "hci0", false))
        for member in ["StartDiscovery", "StopDiscovery", "SetDiscoveryFilter"] {
            #expect(bench.call(Bench.adapter, member).last?.hasSuffix("NotReady: Resource Not Ready") == true)
        }
    }

    @Test func `The scan of one client goes on when another's ends, and ends with its connection`() throws {
        var bench = try Bench(kind: "battery")
        bench.call(Bench.adapter, "StartDiscovery", from: ":1.1")
        #expect(bench.call(Bench.adapter, "StartDiscovery", from: ":1.2") == ["reply 2"])
        #expect(bench.call(Bench.adapter, "StopDiscovery", from: ":1.1") == ["reply 3"])
        #expect(bench.leave(":1.2") == ["hci0 Discovering=false"])
    }

    @Test func `At the end of the scan signal strengths are invalid and beacons gone`() throws {
        var bench = try Bench(
            """
            peripherals:
              - {name: p, address: 'C0:FF:EE:00:00:01', kind: battery}
              - {name: beacon, address: 'C0:FF:EE:00:00:02', kind: custom, advertise: {connectable: false}}
            """
        )
        bench.scan()
        #expect(
            bench.call(Bench.adapter, "StopDiscovery") == [
                "hci0 Discovering=false", "\(Self.dev) -RSSI", "dev_C0_FF_EE_00_00_02 -RSSI",
                "-dev_C0_FF_EE_00_00_02 Device1", "reply 2",
            ]
        )
    }

    @Test func `A device goes 30 s after it was last heard, and comes back when it is heard again`() throws {
        var bench = try Bench(kind: "battery")
        bench.scan()
        try bench.order(.vanish("p"))
        #expect(bench.wait(.seconds(29)) == [])
        #expect(bench.wait(.seconds(2)) == ["-\(Self.dev) Device1"])
        try bench.order(.appear("p"))
        #expect(bench.wait(.seconds(1)).first == "+\(Self.dev) Device1")
        bench.call(Bench.adapter, "StopDiscovery")
        #expect(bench.wait(.seconds(31)) == ["-\(Self.dev) Device1"])
        #expect(bench.wait(.seconds(100)) == [])
    }

    @Test func `One that is connected, trusted or paired stays`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        bench.call(Bench.adapter, "StopDiscovery")
        #expect(bench.wait(.seconds(60)) == [])
        bench.call(Bench.device, "Set", .string(InterfaceName.device), .string("Trusted"), .variant(.boolean(true)))
        try bench.order(.drop("p"))
        #expect(bench.wait(.seconds(60)) == [])
        bench.call(Bench.device, "Set", .string(InterfaceName.device), .string("Trusted"), .variant(.boolean(false)))
        #expect(bench.wait(.seconds(1)).last == "-\(Self.dev) Device1")
    }

    static let filters: [(DBusValue, isShown: Bool)] = [
        (.properties([Property("Transport", .string("le"))]), true),
        (.properties([Property("UUIDs", .strings(["0000180d-0000-1000-8000-00805f9b34fb"]))]), true),
        (.properties([Property("UUIDs", .strings(["180f"]))]), false),
        (.properties([Property("RSSI", .int16(-60))]), true),
        (.properties([Property("RSSI", .int16(-59))]), false),
        (.properties([Property("Pattern", .string("C0:FF"))]), true),
        (.properties([Property("Pattern", .string("Dial"))]), false),
    ]

    @Test(arguments: filters)
    func `A filter decides what is shown`(filter: DBusValue, isShown: Bool) throws {
        var bench = try Bench(kind: "heart-rate", ", battery: 1")
        bench.call(Bench.adapter, "SetDiscoveryFilter", filter)
        bench.call(Bench.adapter, "StartDiscovery")
        #expect(bench.wait(.seconds(1)).contains("+\(Self.dev) Device1") == isShown)
    }

    @Test(arguments: [
        Property("Colour", .string("red")), Property("RSSI", .int32(-60)), Property("RSSI", .int16(21)),
        Property("UUIDs", .strings(["strap"])), Property("Transport", .string("carrier pigeon")),
    ])
    func `A filter that makes no sense is refused`(property: Property) throws {
        var bench = try Bench(kind: "battery")
        let lines = bench.call(Bench.adapter, "SetDiscoveryFilter", .properties([property]))
        #expect(lines == ["fail 1 InvalidArguments: Invalid arguments in method call"])
    }

    @Test func `With DuplicateData each advertisement is a signal`() throws {
        var bench = try Bench(kind: "battery", ", advertise: {interval: 100ms, manufacturer_data: {0x004c: '01 02'}}")
        bench.call(Bench.adapter, "SetDiscoveryFilter", .properties([Property("DuplicateData", .boolean(true))]))
        bench.scan()
        #expect(bench.wait(.seconds(1)).count { $0.contains("ManufacturerData") } == 10)
    }

    @Test func `RemoveDevice disconnects first, and knows only its own`() throws {
        var bench = try Bench(kind: "battery")
        #expect(
            bench.call(Bench.adapter, "RemoveDevice", .objectPath(Bench.device)) == [
                "fail 1 DoesNotExist: Does Not Exist"
            ]
        )
        bench.connect()
        bench.call(Bench.adapter, "RemoveDevice", .objectPath(Bench.device))
        let lines = bench.wait(.milliseconds(60))
        #expect(lines.prefix(4).suffix(2) == ["\(Self.dev) Connected=false", "reply 4"])
        #expect(lines.last == "-\(Self.dev) Device1")
    }

    @Test func `An object that is not there answers as GDBus does`() throws {
        var bench = try Bench(kind: "battery")
        let text = "Method \"Connect\" with signature \"\" on interface \"org.bluez.Device1\" doesn't exist\n"
        #expect(bench.call(Bench.device, "Connect") == ["fail 1 UnknownObject: \(text)"])
    }

    @Test func `Introspection leads from the root to every object`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        #expect(bench.world.introspection(of: "/")?.contains("<node name=\"org\"/>") == true)
        #expect(bench.world.introspection(of: "/org") == "<node><node name=\"bluez\"/></node>")
        #expect(bench.world.introspection(of: Bench.device)?.contains("<property name=\"RSSI\" type=\"n\"") == true)
        #expect(bench.world.introspection(of: "/net") == nil)
    }
}
