import GattherdBluetooth
import GattherdConfig
import GattherdGATT
import GattherdHistory
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

@testable import GattherdGateway

@Suite struct EnrolmentRuleTests {
    private static let address = BluetoothAddress(value: 0xC0FF_EE00_000A)

    private static func rules(_ rules: String...) throws -> [EnrolRule] {
        let text = "enrol:\n" + rules.map { "  - {\($0)}\n" }.joined()
        let environment = ConfigEnvironment(variables: [:], hostName: "h")
        let source = ConfigSource(name: "a.yaml", text: text)
        return try Configuration.parse([source], in: environment, outputs: []).enrol
    }

    /// Batteries come before hearts, as in the folder of the standard services.
    private static func registry() throws -> ProfileRegistry {
        let folder = try TemporaryFolder()
        for (name, service) in [("battery", "180f"), ("heart", "180d")] {
            let fields = "[{metric: \(name), type: u8}]"
            let characteristic = "{uuid: 2a37, stream: \(name), subscribe: notify, fields: \(fields)}"
            let body = "services: [\(service)], characteristics: [\(characteristic)]"
            let text = "{contract: 1, profile: \(name), title: T, \(body)}"
            _ = try folder.write(text, to: name + ".yaml")
        }
        return try ProfileRegistry.load(paths: [folder.path])
    }

    private static func peripheral(_ change: (inout PeripheralStatus) -> Void = { _ in }) -> PeripheralStatus {
        var status = PeripheralStatus(id: .init(adapter: BluetoothAddress(value: 1), address: address))
        (status.rssi, status.services) = (-60, [BluetoothUUID(0x180F), BluetoothUUID(0x180D)])
        change(&status)
        return status
    }

    private func name(_ rules: String..., of peripheral: PeripheralStatus) throws -> String? {
        let rules = try rules.flatMap { try Self.rules($0) }
        return EnrolmentRules(rules, try Self.registry()).device(for: peripheral)?.name.value
    }

    @Test func `the profile in a name is that of the matched service, else the first that fits`()
        throws
    {
        let template = "name: '{profile}-{address}'"
        let peripheral = Self.peripheral { $0.name = "X" }
        #expect(try name("match: {service: 180d}, \(template)", of: peripheral) == "heart-c0ffee00000a")
        #expect(try name("match: {name: X}, \(template)", of: peripheral) == "battery-c0ffee00000a")
        #expect(try name("match: {name: X}, profiles: [heart], \(template)", of: peripheral) == "heart-c0ffee00000a")
    }

    @Test func `the first matching rule wins`() throws {
        let rules = ["match: {service: 1800}, name: 'a-{address}'", "match: {service: 180d}, name: 'b-{address}'"]
        let last = "match: {rssi_at_least: -70}, name: 'c-{address}'"
        let nameless = "match: {service: fcd2}, name: '{profile}-{address}'"
        #expect(try name(rules[0], rules[1], last, of: Self.peripheral()) == "b-c0ffee00000a")
        let sensor = Self.peripheral { $0.advertisement.serviceData = [BluetoothUUID(0xFCD2): [0x40]] }
        #expect(try name(nameless, last, of: sensor) == "c-c0ffee00000a")
        #expect(try name("match: {service: fcd2}, name: '{address}'", of: sensor) == "c0ffee00000a")
    }

    @Test func `a peripheral with a private address or without RSSI becomes no device`() throws {
        let rule = "match: {service: 180d}, name: '{address}'"
        #expect(try name(rule, of: Self.peripheral { $0.hasPrivateAddress = true }) == nil)
        #expect(try name(rule, of: Self.peripheral { $0.rssi = nil }) == nil)
        #expect(try name(rule, of: Self.peripheral { ($0.rssi, $0.isConnected) = (nil, true) }) == nil)
        #expect(try name(rule, of: Self.peripheral()) != nil)
    }

    @Test func `devices of earlier runs are recalled if their rule exists and they are not configured`() throws {
        var configuration = Configuration(gateway: "g", database: "h.db")
        configuration.enrol = try Self.rules(
            "match: {service: 180d}, name: 'x-{address}'",
            "match: {service: 180f}, name: 'x-{address}', profiles: [battery]"
        )
        let (first, second) = (configuration.enrol[0].identity, configuration.enrol[1].identity)
        let other = BluetoothAddress(value: 0xC0FF_EE00_000B)
        let records = [
            EnrolledDevice(device: "x-a", address: Self.address.description, rule: second),
            EnrolledDevice(device: "x-b", address: other.description, rule: first),
            EnrolledDevice(device: "x-c", address: "C0:FF:EE:00:00:0C", rule: "x-{address} gone"),
            EnrolledDevice(device: "x-d", address: "nonsense", rule: first),
        ]
        let recalled = configuration.recalling(records).devices
        #expect(recalled.map(\.name.value) == ["x-a", "x-b"])
        #expect(recalled.map { $0.profiles?.map(\.value) } == [["battery"], nil])
        #expect(recalled.compactMap { EnrolledDevice($0) } == Array(records.prefix(2)))
        configuration.devices = [DeviceSettings(name: Located("strap"), address: Located(Self.address))]
        #expect(configuration.recalling(records).devices.map(\.name.value) == ["strap", "x-b"])
        configuration.devices = [DeviceSettings(name: Located("x-a"), address: Located(BluetoothAddress(value: 7)))]
        #expect(configuration.recalling(records).devices.map(\.name.value) == ["x-a", "x-b"])
        #expect(configuration.recalling(records).devices.compactMap { EnrolledDevice($0) }.map(\.device) == ["x-b"])
    }

    @Test func `a configuration without devices of earlier runs keeps the storage of its devices`() {
        var configuration = Configuration(gateway: "g", database: "h.db")
        configuration.devices = [DeviceSettings(name: Located("strap"), address: Located(Self.address))]
        let all = [configuration, configuration.recalling([])]
        let storage = unsafe Set(all.map { unsafe $0.devices.withUnsafeBufferPointer(\.baseAddress) })
        #expect(unsafe storage.count == 1)
    }
}
