import GattherdDBus
import GattherdGATT
import Testing

@testable import GattherdSimulator

@Suite struct GATTTests {
    private static let none = DBusValue.properties([Property]())
    private static let request = DBusValue.properties([Property("type", .string("request"))])
    private static let command = DBusValue.properties([Property("type", .string("command"))])

    private static func custom(_ characteristic: String) throws -> Bench {
        var bench = try Bench(
            kind: "custom",
            ", services: [{uuid: fff0, characteristics: [{uuid: fff1, \(characteristic)}]}]"
        )
        bench.connect()
        return bench
    }

    @Test func `every read also signals Value`() throws {
        var bench = try Bench(kind: "number-service", ", value: 42")
        bench.connect()
        #expect(bench.call(try bench.characteristic(0), "ReadValue", Self.none) == [])
        #expect(bench.wait(.milliseconds(2)) == ["char000b Value=2a", "reply 3 2a"])
    }

    @Test func `a read of an unreadable characteristic returns an empty value`() throws {
        var bench = try Bench(kind: "heart-rate", ", rate: 0")
        bench.connect()
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        #expect(bench.wait(.milliseconds(2)) == ["char000b Value=", "reply 3 "])
    }

    @Test func `a read at an offset returns the rest and fails past the end`() throws {
        var bench = try Self.custom("value: '01 02 03'")
        bench.call(try bench.characteristic(0), "ReadValue", .properties([Property("offset", .uint16(2))]))
        #expect(bench.wait(.milliseconds(2)).last == "reply 3 03")
        bench.call(try bench.characteristic(0), "ReadValue", .properties([Property("offset", .uint16(4))]))
        #expect(bench.wait(.milliseconds(2)) == ["fail 4 InvalidArguments: Invalid offset"])
    }

    @Test(arguments: ["ReadValue", "WriteValue", "AcquireNotify"])
    func `GATT calls without a link fail with Not connected`(member: String) throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        try bench.order(.drop("p"))
        let path = try bench.characteristic(0)
        let lines =
            member == "WriteValue"
            ? bench.call(path, member, .bytes([1]), Self.request) : bench.call(path, member, Self.none)
        #expect(lines == ["fail 3 Failed: Not connected"])
    }

    @Test func `the number service stores values, refuses other lengths and notifies changes`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        let path = try bench.characteristic(0)
        bench.call(path, "StartNotify")
        #expect(bench.wait(.milliseconds(2)) == ["(subscribed)", "char000b Notifying=true", "reply 3"])
        bench.call(path, "WriteValue", .bytes([0x7F]), Self.request)
        let uuid = "7a4b0001-999f-4717-b63a-066e06971f59"
        #expect(bench.wait(.milliseconds(2)) == ["(write 7f)", "char000b Value=7f", "(\(uuid) #0 7f)", "reply 4"])
        bench.call(path, "WriteValue", .bytes([0x7F]), Self.request)
        #expect(bench.wait(.milliseconds(2)) == ["(write 7f)", "reply 5"])
        bench.call(path, "WriteValue", .bytes([]), Self.request)
        #expect(bench.wait(.milliseconds(2)) == ["(write  error 13)", "fail 6 InvalidArguments: Invalid Length"])
        bench.call(path, "WriteValue", .bytes([0, 1]), Self.request)
        #expect(bench.wait(.milliseconds(2)).last == "fail 7 InvalidArguments: Invalid Length")
        bench.call(path, "ReadValue", .properties([Property("offset", .uint16(1))]))
        #expect(bench.wait(.milliseconds(2)) == ["fail 8 Failed: Operation failed with ATT error: 0x0b"])
    }

    @Test func `a write request needs the property and an explicit command does not`() throws {
        var bench = try Self.custom("properties: [read]")
        let path = try bench.characteristic(0)
        #expect(
            bench.call(path, "WriteValue", .bytes([1]), Self.request) == [
                "fail 3 NotSupported: Operation is not supported"
            ]
        )
        #expect(
            bench.call(path, "WriteValue", .bytes([1]), Self.none) == [
                "fail 4 NotSupported: Operation is not supported"
            ]
        )
        #expect(bench.call(path, "WriteValue", .bytes([1]), Self.command) == ["reply 5", "(write fff1 01)"])
        let long = [UInt8](repeating: 0, count: 513)
        #expect(
            bench.call(path, "WriteValue", .bytes(long), Self.request) == ["fail 6 InvalidArguments: Invalid Length"]
        )
    }

    static let codes: [(UInt8, String)] = [
        (0x02, "NotPermitted: Read not permitted"), (0x03, "NotPermitted: Write not permitted"),
        (0x05, "NotPermitted: Not paired"), (0x06, "NotSupported: Operation is not supported"),
        (0x07, "InvalidArguments: Invalid offset"), (0x08, "NotAuthorized: Operation Not Authorized"),
        (0x0D, "InvalidArguments: Invalid Length"), (0x0E, "Failed: Operation failed with ATT error: 0x0e"),
        (0x80, "Failed: Operation failed with ATT error: 0x80"),
    ]

    @Test(arguments: codes)
    func `an ATT error has BlueZ's name and text`(code: UInt8, text: String) throws {
        var bench = try Self.custom("properties: [write], write: {error: \(code)}")
        bench.call(try bench.characteristic(0), "WriteValue", .bytes([1]), Self.request)
        #expect(bench.wait(.milliseconds(2)).last == "fail 3 " + text)
    }

    @Test func `an unanswered request fails after 30 s and ends the link 2 s later`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        try bench.order(.silence("p", .all))
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        #expect(bench.wait(.seconds(29)) == [])
        #expect(bench.wait(.seconds(1)) == ["fail 3 Failed: Operation failed with ATT error: 0x0e"])
        #expect(bench.wait(.seconds(2)).first == "(disconnected unanswered)")
    }

    @Test func `the heart rate control point resets the energy and refuses other values`() throws {
        var bench = try Bench(kind: "heart-rate", ", energy: true, rate: 10")
        bench.connect()
        bench.wait(.seconds(1))
        let path = try bench.characteristic(2)
        bench.call(path, "WriteValue", .bytes([2]), Self.request)
        #expect(bench.wait(.milliseconds(2)).contains("fail 3 Failed: Operation failed with ATT error: 0x80"))
        bench.call(path, "WriteValue", .bytes([1]), Self.request)
        let energies = bench.wait(.seconds(0.3)).filter { $0.hasPrefix("(2a37") }.map { $0.dropLast(6).suffix(4) }
        #expect(energies.prefix(3) == ["0000", "0100", "0200"])
    }

    @Test func `descriptors can be read`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        let path = try bench.characteristic(0)
        bench.call(path + "/desc000d", "ReadValue", Self.none)
        #expect(bench.wait(.milliseconds(2)).last == "reply 3 536f6d65204e756d626572")
        #expect(
            bench.call(path + "/desc000f", "WriteValue", .bytes([1, 0]), Self.none) == [
                "fail 4 NotPermitted: Write not permitted"
            ]
        )
    }

    @Test(arguments: [DBusValue.int16(-1), .string("x")])
    func `an offset of another type is refused`(offset: DBusValue) throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        let options = DBusValue.properties([Property("offset", offset)])
        let path = try bench.characteristic(0)
        for lines in [
            bench.call(path, "ReadValue", options), bench.call(path, "WriteValue", .bytes([1]), options),
            bench.call(path + "/desc000d", "ReadValue", options),
        ] { #expect(lines.first?.hasSuffix("InvalidArguments: Invalid arguments in method call") == true) }
    }

    @Test func `invalid orders are refused`() throws {
        let bench = try Bench(kind: "number-service")
        let invalid: [SimulatorOrder] = [
            .drop("nobody"), .drop("p"), .setRate("p", .nan), .setRate("p", 1e-300), .setRate("p", 1001),
            .setPowered(adapter: "hci7", true), .failNext(target: "p", method: "Connect", error: "0x100", times: 1),
            .failNext(target: "p", method: "Connect", error: "a..b: text", times: 1),
            .notify("p", characteristic: BluetoothUUID(0x2A37), []),
        ]
        for order in invalid {
            #expect(throws: SimulatorOrderError.self) { try OrderResolver(bench.bluetoothd.world).command(for: order) }
        }
    }

    @Test func `the order fail-next fails the next calls of a method`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        let path = try bench.characteristic(0)
        try bench.order(.failNext(target: "p", method: "ReadValue", error: "0x11", times: 1))
        try bench.order(.failNext(target: "p", method: "ReadValue", error: "NotAuthorized: go away", times: 1))
        try bench.order(.failNext(target: "p", method: "ReadValue", error: "no-reply", times: 1))
        #expect(bench.call(path, "ReadValue", Self.none) == ["fail 3 Failed: Operation failed with ATT error: 0x11"])
        #expect(bench.call(path, "ReadValue", Self.none) == ["fail 4 NotAuthorized: go away"])
        #expect(bench.call(path, "ReadValue", Self.none) == [])
        #expect(bench.wait(.seconds(60)) == [])
        bench.call(path, "ReadValue", Self.none)
        #expect(bench.wait(.milliseconds(2)).last == "reply 6 00")
        try bench.order(.failNext(target: "hci0", method: "StartDiscovery", error: "InProgress", times: 1))
        #expect(bench.call(Bench.adapter, "StartDiscovery", from: ":1.9") == ["fail 7 InProgress: "])
    }

    @Test func `pending requests fail after the signal of the link's end`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        let path = try bench.characteristic(0)
        bench.call(path, "ReadValue", Self.none)
        bench.call(path, "WriteValue", .bytes([1]), Self.request)
        bench.call(path, "StartNotify")
        let dev = "dev_C0_FF_EE_00_00_01"
        #expect(
            try bench.order(.drop("p")) == ["(disconnected remote)", "\(dev) ServicesResolved=false Connected=false"]
                + (3...5).map { "fail \($0) Failed: Operation failed with ATT error: 0x0e" }
        )
        #expect(bench.call(path, "StopNotify") == ["fail 6 Failed: No notify session started"])
    }

    @Test func `a write does not signal Value`() throws {
        var bench = try Self.custom("properties: [read, write]")
        bench.call(try bench.characteristic(0), "WriteValue", .bytes([1]), Self.request)
        #expect(bench.wait(.milliseconds(2)) == ["(write fff1 01)", "reply 3"])
    }

    @Test func `a read of a descriptor signals its Value`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        bench.call(try bench.characteristic(0) + "/desc000d", "ReadValue", Self.none)
        #expect(bench.wait(.milliseconds(2)).first == "desc000d Value=536f6d65204e756d626572")
    }

    @Test func `several requests at once all succeed`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        let path = try bench.characteristic(0)
        for _ in 3...6 { bench.call(path, "ReadValue", Self.none) }
        let lines = bench.wait(.milliseconds(10))
        #expect((3...6).allSatisfy { lines.contains("reply \($0) 00") })
    }

    @Test func `a call with other arguments fails as an unknown method`() throws {
        var bench = try Bench(kind: "number-service")
        bench.connect()
        let text = "on interface \"org.bluez.GattCharacteristic1\" doesn't exist\n"
        let path = try bench.characteristic(0)
        #expect(
            bench.call(path, "ReadValue") == ["fail 3 UnknownMethod: Method \"ReadValue\" with signature \"\" \(text)"]
        )
        #expect(
            bench.call(path, "WriteValue", .bytes([1])) == [
                "fail 4 UnknownMethod: Method \"WriteValue\" with signature \"ay\" \(text)"
            ]
        )
    }

    @Test func `MTU exists only while the link exists`() throws {
        var bench = try Bench(kind: "number-service", ", mtu: 185")
        bench.connect()
        let path = try bench.characteristic(0)
        #expect(bench.get(path, "MTU") == "185")
        try bench.order(.drop("p"))
        #expect(bench.get(path, "MTU").contains("No such property 'MTU'"))
    }
}
