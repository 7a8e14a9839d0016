import GattherdDBus
import Testing

@testable import GattherdSimulator

/// `org.freedesktop.DBus.Properties`.
@Suite struct SettingTests {
    private static func set(_ name: String, _ value: DBusValue, on interface: String) -> [DBusValue] {
        [.string(interface), .string(name), .variant(value)]
    }

    static let refusals: [(name: String, value: DBusValue, text: String)] = [
        ("Paired", .boolean(true), "PropertyReadOnly: Property 'Paired' is not writable"),
        ("Bogus", .boolean(true), "UnknownProperty: No such property 'Bogus'"),
        ("Trusted", .string("x"), "InvalidSignature: Invalid signature for 'Trusted'"),
    ]

    @Test(arguments: refusals)
    func `setting a read-only or unknown property fails with a reason`(
        name: String,
        value: DBusValue,
        text: String
    ) throws {
        var bench = try Bench(kind: "battery")
        bench.scan()
        let arguments = Self.set(name, value, on: InterfaceName.device)
        #expect(bench.call(Bench.device, "Set", arguments) == ["fail 2 \(text)"])
    }

    @Test func `reading an unknown property or interface fails with a reason`() throws {
        var bench = try Bench(kind: "battery")
        bench.scan()
        #expect(bench.get(Bench.device, "Bogus") == "InvalidArgs: No such property 'Bogus'")
        #expect(
            bench.call(Bench.device, "GetAll", .string("org.bluez.Bogus")) == [
                "fail 3 InvalidArgs: No such interface 'org.bluez.Bogus'"
            ]
        )
    }

    @Test func `setting an equal value sends no signal`() throws {
        var bench = try Bench(kind: "battery")
        bench.scan()
        let trusted = Self.set("Trusted", .boolean(true), on: InterfaceName.device)
        #expect(bench.call(Bench.device, "Set", trusted) == ["dev_C0_FF_EE_00_00_01 Trusted=true", "reply 2"])
        #expect(bench.call(Bench.device, "Set", trusted) == ["reply 3"])
    }

    @Test func `a set alias is shown until it is cleared`() throws {
        var bench = try Bench(kind: "battery", ", advertise: {name: Cell}")
        bench.scan()
        for (alias, shown) in [("x", "x"), ("", "Cell")] {
            bench.call(Bench.device, "Set", Self.set("Alias", .string(alias), on: InterfaceName.device))
            #expect(bench.get(Bench.device, "Alias") == shown)
        }
    }

    @Test func `introspection lists the methods with their signatures`() throws {
        let bench = try Bench(kind: "battery")
        let text = bench.introspection(of: Bench.adapter) ?? ""
        #expect(text.contains("<method name=\"StartDiscovery\"></method>"))
        #expect(
            text.contains("<method name=\"SetDiscoveryFilter\"><arg type=\"a{sv}\" direction=\"in\"/></method>")
        )
        #expect(
            MethodTable.introspection(of: InterfaceName.characteristic).contains(
                "<method name=\"WriteValue\"><arg type=\"ay\" direction=\"in\"/><arg type=\"a{sv}\" direction=\"in\"/>"
            )
        )
    }
}
