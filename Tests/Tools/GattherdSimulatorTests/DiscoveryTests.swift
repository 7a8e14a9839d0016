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
        let refusals =
            bench.call(Bench.adapter, "StartDiscovery") + bench.call(Bench.adapter, "StopDiscovery")
            + bench.call(Bench.adapter, "SetDiscoveryFilter", .properties([Property]()))
        #expect(refusals == (4...6).map { "fail \($0) NotReady: Resource Not Ready" })
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
                "\(Self.dev) -RSSI", "dev_C0_FF_EE_00_00_02 -RSSI", "-dev_C0_FF_EE_00_00_02 Device1",
                "hci0 Discovering=false", "reply 2",
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
        let lines = bench.wait(.seconds(2))
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

    @Test func `What advertises without Flags is shown only while somebody has a filter`() throws {
        var bench = try Bench(kind: "battery", ", advertise: {flags: false}")
        bench.scan()
        #expect(!bench.wait(.seconds(60)).contains("+\(Self.dev) Device1"))
        let nothing = DBusValue.properties([Property]())
        bench.call(Bench.adapter, "SetDiscoveryFilter", nothing, from: ":1.2")
        bench.call(Bench.adapter, "StartDiscovery", from: ":1.2")
        #expect(!bench.wait(.seconds(60)).contains("+\(Self.dev) Device1"))
        let le = DBusValue.properties([Property("Transport", .string("le"))])
        bench.call(Bench.adapter, "SetDiscoveryFilter", le, from: ":1.2")
        #expect(bench.wait(.seconds(1)).contains("+\(Self.dev) Device1"))
    }

    @Test func `A filter outlives StopDiscovery, but not the power or its client`() throws {
        var bench = try Bench(kind: "battery", ", advertise: {flags: false}")
        let filter = DBusValue.properties([Property("Transport", .string("le"))])
        func isShown() -> Bool {
            bench.scan()
            let isShown = bench.world.nodes[Bench.device] != nil
            bench.call(Bench.adapter, "StopDiscovery")
            bench.wait(.seconds(31))
            return isShown
        }
        bench.call(Bench.adapter, "SetDiscoveryFilter", filter)
        #expect(isShown())
        #expect(isShown())
        try bench.order(.setPowered(adapter: "hci0", false))
        try bench.order(.setPowered(adapter: "hci0", true))
        #expect(!isShown())
        bench.call(Bench.adapter, "SetDiscoveryFilter", filter)
        bench.leave(":1.1")
        #expect(!isShown())
    }

    @Test func `A device has what it advertises`() throws {
        var bench = try Bench(
            kind: "heart-rate",
            """
            , advertise: {name: Strap, appearance: 833, tx_power: -4, rssi: -71,
              manufacturer_data: {0x004c: '02 15'}, service_data: {fcd2: '40'}}
            """
        )
        bench.scan()
        #expect(bench.get(Bench.device, "Appearance") == "833")
        #expect(bench.get(Bench.device, "TxPower") == "-4")
        #expect(bench.get(Bench.device, "AddressType") == "random")
        let properties = bench.world.properties(ofDevice: DeviceKey(adapter: 0, peripheral: 0))
        let manufacturer = properties.first { $0.name == "ManufacturerData" }?.value.entries?.first
        #expect(manufacturer == DBusEntry(.uint16(0x4C), .variant(.bytes([2, 0x15]))))
        let service = properties.first { $0.name == "ServiceData" }?.value.entries?.first
        #expect(service == DBusEntry(.string("0000fcd2-0000-1000-8000-00805f9b34fb"), .variant(.bytes([0x40]))))
    }

    @Test func `After its link a device is known for 30 s with its objects, which then go one by one`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        bench.call(Bench.adapter, "StopDiscovery")
        try bench.order(.drop("p"))
        #expect(bench.wait(.seconds(29)) == [])
        #expect(
            bench.wait(.seconds(1)) == [
                "-desc000d GattDescriptor1", "-char000b GattCharacteristic1", "-service000a GattService1",
                "-\(Self.dev) Device1",
            ]
        )
    }

    @Test func `One that was told not to advertise is not heard, and cannot be connected to, until it may`() throws {
        var bench = try Bench(kind: "battery")
        try bench.order(.advertise("p", false))
        bench.scan()
        #expect(bench.wait(.seconds(5)) == [])
        try bench.order(.advertise("p", true))
        #expect(bench.wait(.seconds(1)).contains("+\(Self.dev) Device1"))
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(1))
        try bench.order(.advertise("p", false))
        #expect(bench.wait(.seconds(1)) == [])
        try bench.order(.drop("p"))
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.seconds(10)) == [])
    }
}
