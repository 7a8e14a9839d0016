import GattherdDBus
import Testing

@testable import GattherdSimulator

/// The life cycle of bonds.
@Suite struct BondTests {
    private static let dev = "dev_C0_FF_EE_00_00_01"
    private static let none = DBusValue.properties([Property]())

    private static func bonded() throws -> Bench {
        var bench = try Bench(
            kind: "custom",
            ", services: [{uuid: fff0, characteristics: [{uuid: fff1, value: '01', encrypted: true}]}]"
        )
        bench.registerAgent("NoInputNoOutput")
        bench.connect()
        bench.call(Bench.device, "Pair")
        bench.wait(.seconds(1))
        bench.call("/org/bluez", "UnregisterAgent", .objectPath("/agent"))
        return bench
    }

    @Test func `a bond survives the link and keeps the device beyond 30 s`() throws {
        var bench = try Self.bonded()
        bench.call(Bench.adapter, "StopDiscovery")
        try bench.order(.drop("p"))
        #expect(bench.wait(.seconds(60)) == [])
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(1))
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        #expect(bench.wait(.seconds(1)).last == "reply 8 01")
    }

    @Test(arguments: [true, false])
    func `a bond survives a restart of bluetoothd`(isGraceful: Bool) throws {
        var bench = try Self.bonded()
        try bench.order(.restartDaemon(isGraceful: isGraceful, downtime: .seconds(1)))
        bench.wait(.seconds(3))
        #expect(bench.get(Bench.device, "Bonded") == "true")
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(2))
        bench.call(try bench.characteristic(0), "ReadValue", Self.none)
        #expect(bench.wait(.seconds(1)).last == "reply 8 01")
    }

    @Test func `RemoveDevice removes the bond, and pairing works again`() throws {
        var bench = try Self.bonded()
        bench.call(Bench.adapter, "RemoveDevice", .objectPath(Bench.device))
        bench.wait(.seconds(3))
        #expect(
            bench.call(Bench.device, "Get", .string(InterfaceName.device), .string("Bonded")) == ["reply 7 false"]
        )
        bench.registerAgent("NoInputNoOutput")
        bench.call(Bench.device, "Pair")
        #expect(bench.wait(.seconds(1)).last == "reply 9")
    }

    @Test func `a peripheral that lost its bond ends the link after Connect and after one automatic retry`() throws {
        var bench = try Self.bonded()
        bench.call(Bench.adapter, "StopDiscovery")
        try bench.order(.drop("p"))
        try bench.order(.forget("p"))
        bench.call(Bench.device, "Connect")
        let link = [
            "(connected hci0)", "\(Self.dev) Connected=true", "(disconnected authentication)",
            "\(Self.dev) Connected=false",
        ]
        #expect(bench.wait(.milliseconds(100)) == link + ["reply 7"])
        #expect(bench.wait(.milliseconds(139)) == [])
        #expect(bench.wait(.milliseconds(1)) == link)
        #expect(bench.wait(.seconds(60)) == [])
        #expect(
            bench.call(Bench.device, "Get", .string(InterfaceName.device), .string("Paired")) == ["reply 8 true"]
        )
    }

    @Test func `registered agents receive Release when bluetoothd ends`() throws {
        var bench = try Bench(kind: "battery")
        bench.registerAgent("NoInputNoOutput")
        #expect(
            try bench.order(.restartDaemon(isGraceful: true, downtime: .seconds(1))).contains("notify :1.1 Release")
        )
        bench.wait(.seconds(1))
        bench.scan()
        #expect(
            bench.call(Bench.adapter, "Get", .string(InterfaceName.adapter), .string("Pairable")).last
                == "reply 3 false"
        )
    }
}
