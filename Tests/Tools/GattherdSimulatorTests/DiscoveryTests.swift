import GattherdDBus
import GattherdGATT
import Testing

@testable import GattherdSimulator

@Suite struct DiscoveryTests {
    private static let dev = "dev_C0_FF_EE_00_00_01"

    @Test func `scanning exports advertising devices with RSSI`() throws {
        var bench = try Bench(kind: "heart-rate", ", advertise: {name: Strap, rssi: -71}")
        #expect(bench.call(Bench.adapter, "StartDiscovery") == ["hci0 Discovering=true", "reply 1"])
        #expect(bench.wait(.milliseconds(200)) == ["+\(Self.dev) Device1"])
        let get = { (name: String) in [DBusValue.string(InterfaceName.device), .string(name)] }
        #expect(bench.call(Bench.device, "Get", get("RSSI")[0], get("RSSI")[1]) == ["reply 2 -71"])
        #expect(bench.call(Bench.device, "Get", get("Name")[0], get("Name")[1]) == ["reply 3 Strap"])
        #expect(bench.call(Bench.device, "Get", get("UUIDs")[0], get("UUIDs")[1]) == ["reply 4 [180d]"])
    }

    @Test func `StartDiscovery and StopDiscovery fail with BlueZ's errors`() throws {
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

    @Test func `a client's scan survives the end of another's and ends with its bus connection`() throws {
        var bench = try Bench(kind: "battery")
        bench.call(Bench.adapter, "StartDiscovery", from: ":1.1")
        #expect(bench.call(Bench.adapter, "StartDiscovery", from: ":1.2") == ["reply 2"])
        #expect(bench.call(Bench.adapter, "StopDiscovery", from: ":1.1") == ["reply 3"])
        #expect(bench.leave(":1.2") == ["hci0 Discovering=false"])
    }

    @Test func `the end of a scan invalidates RSSI and removes beacons`() throws {
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

    @Test func `a device is removed 30 s after its last advertisement and returns with the next`() throws {
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

    @Test func `connected, trusted and paired devices are not removed`() throws {
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
    func `a discovery filter selects the exported devices`(filter: DBusValue, isShown: Bool) throws {
        var bench = try Bench(kind: "heart-rate", ", battery: 1")
        bench.call(Bench.adapter, "SetDiscoveryFilter", filter)
        bench.call(Bench.adapter, "StartDiscovery")
        #expect(bench.wait(.seconds(1)).contains("+\(Self.dev) Device1") == isShown)
    }

    @Test(arguments: [
        Property("Colour", .string("red")), Property("RSSI", .int32(-60)), Property("RSSI", .int16(21)),
        Property("UUIDs", .strings(["strap"])), Property("Transport", .string("carrier pigeon")),
    ])
    func `an invalid discovery filter is refused`(property: Property) throws {
        var bench = try Bench(kind: "battery")
        let lines = bench.call(Bench.adapter, "SetDiscoveryFilter", .properties([property]))
        #expect(lines == ["fail 1 InvalidArguments: Invalid arguments in method call"])
    }

    @Test func `DuplicateData signals each advertisement`() throws {
        var bench = try Bench(kind: "battery", ", advertise: {interval: 100ms, manufacturer_data: {0x004c: '01 02'}}")
        bench.call(Bench.adapter, "SetDiscoveryFilter", .properties([Property("DuplicateData", .boolean(true))]))
        bench.scan()
        #expect(bench.wait(.seconds(1)).count { $0.contains("ManufacturerData") } == 10)
    }

    @Test func `RemoveDevice disconnects first and refuses devices of other adapters`() throws {
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

    @Test func `a call to a missing object fails as with GDBus`() throws {
        var bench = try Bench(kind: "battery")
        let text = "Method \"Connect\" with signature \"\" on interface \"org.bluez.Device1\" doesn't exist\n"
        #expect(bench.call(Bench.device, "Connect") == ["fail 1 UnknownObject: \(text)"])
    }

    @Test func `introspection from the root reaches every object`() throws {
        var bench = try Bench(kind: "battery")
        bench.connect()
        #expect(bench.introspection(of: "/")?.contains("<node name=\"org\"/>") == true)
        #expect(bench.introspection(of: "/org") == "<node><node name=\"bluez\"/></node>")
        #expect(bench.introspection(of: Bench.device)?.contains("<property name=\"RSSI\" type=\"n\"") == true)
        #expect(bench.introspection(of: "/net") == nil)
    }

    @Test func `advertisements without Flags are visible only with a filter`() throws {
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

    @Test func `a filter survives StopDiscovery, but not power off or its client's exit`() throws {
        var bench = try Bench(kind: "battery", ", advertise: {flags: false}")
        let filter = DBusValue.properties([Property("Transport", .string("le"))])
        func isShown() -> Bool {
            bench.scan()
            let isShown = bench.objects[Bench.device] != nil
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

    @Test func `a device has the properties that it advertises`() throws {
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
        let device = Node.device(DeviceKey(adapter: 0, peripheral: 0))
        let properties = bench.objects.interfaces(of: device).flatMap(\.properties)
        let manufacturer = properties.first { $0.name == "ManufacturerData" }?.value.entries?.first
        #expect(manufacturer == DBusEntry(.uint16(0x4C), .variant(.bytes([2, 0x15]))))
        let service = properties.first { $0.name == "ServiceData" }?.value.entries?.first
        #expect(service == DBusEntry(.string("0000fcd2-0000-1000-8000-00805f9b34fb"), .variant(.bytes([0x40]))))
    }

    @Test func `a disconnected device keeps its objects for 30 s, then removes them one by one`() throws {
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

    @Test func `a peripheral that stops advertising is neither seen nor connected until it resumes`() throws {
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
