import GattherdBluetooth
import GattherdConfig
import GattherdGATT
import GattherdHistory
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

@testable import gattherd

@Suite("Enrolment") struct EnrolmentRuleTests {
    private static let address = BluetoothAddress(value: 0xC0FF_EE00_000A)
    private static let now = Timestamp(microseconds: 1_795_230_000_000_000)

    private static func rules(_ rules: String...) throws -> [EnrolRule] {
        let text = "enrol:\n" + rules.map { "  - {\($0)}\n" }.joined()
        let surroundings = ConfigSurroundings(variables: [:], hostName: "h")
        return try Configuration.parse([ConfigSource(name: "a.yaml", text: text)], in: surroundings).enrol
    }

    /// Batteries come before hearts, as in the folder of the standard services.
    private static func registry() throws -> ProfileRegistry {
        let folder = try TemporaryFolder()
        for (name, service) in [("battery", "180f"), ("heart", "180d")] {
            let fields = "[{metric: \(name), type: u8}]"
            let characteristic = "{uuid: 2a37, stream: \(name), subscribe: notify, fields: \(fields)}"
            let text =
                "{contract: 1, profile: \(name), title: T, services: [\(service)], characteristics: [\(characteristic)]}"
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
        return Enrolment(rules, try Self.registry()).device(for: peripheral)?.name.value
    }

    @Test func `The profile in a name is that of the service that is asked for, else the first for one that is there`()
        throws
    {
        let template = "name: '{profile}-{address}'"
        let peripheral = Self.peripheral { $0.name = "X" }
        #expect(try name("match: {service: 180d}, \(template)", of: peripheral) == "heart-c0ffee00000a")
        #expect(try name("match: {name: X}, \(template)", of: peripheral) == "battery-c0ffee00000a")
        #expect(try name("match: {name: X}, profiles: [heart], \(template)", of: peripheral) == "heart-c0ffee00000a")
    }

    @Test func `The first rule that has a name for it counts`() throws {
        let rules = ["match: {service: 1800}, name: 'a-{address}'", "match: {service: 180d}, name: 'b-{address}'"]
        let last = "match: {rssi_at_least: -70}, name: 'c-{address}'"
        let nameless = "match: {service: fcd2}, name: '{profile}-{address}'"
        #expect(try name(rules[0], rules[1], last, of: Self.peripheral()) == "b-c0ffee00000a")
        let sensor = Self.peripheral { $0.advertisement.serviceData = [BluetoothUUID(0xFCD2): [0x40]] }
        #expect(try name(nameless, last, of: sensor) == "c-c0ffee00000a")
        #expect(try name("match: {service: fcd2}, name: '{address}'", of: sensor) == "c0ffee00000a")
    }

    @Test func `Who has a private address or is not there becomes no device`() throws {
        let rule = "match: {service: 180d}, name: '{address}'"
        #expect(try name(rule, of: Self.peripheral { $0.hasPrivateAddress = true }) == nil)
        #expect(try name(rule, of: Self.peripheral { $0.rssi = nil }) == nil)
        #expect(try name(rule, of: Self.peripheral { ($0.rssi, $0.isConnected) = (nil, true) }) != nil)
    }

    @Test func `Those are recalled that a rule would have made, for as long as it says, and that nobody has named`()
        throws
    {
        let rules = try Self.rules("match: {service: 180d}, name: '{profile}-{address}', forget_after: 1d")
        let other = BluetoothAddress(value: 0xC0FF_EE00_000B)
        let sightings = [
            DeviceSighting(device: "heart-c0ffee00000a", address: Self.address.description, time: Self.now),
            DeviceSighting(device: "strap", address: Self.address.description, time: Self.now),
            DeviceSighting(device: "x-c0ffee00000b", address: other.description, time: Self.now),
            DeviceSighting(device: "y-c0ffee00000b", address: "nonsense", time: Self.now),
        ]
        let day = Duration.seconds(86_400)
        let recalled = { (named: [DeviceSettings], after: Duration) in
            rules.recalled(sightings, beside: named, now: Self.now.advanced(by: after)).map(\.name.value)
        }
        #expect(recalled([], .zero) == ["heart-c0ffee00000a", "x-c0ffee00000b"])
        #expect(recalled([], day - .seconds(1)).count == 2)
        #expect(recalled([], day).isEmpty)
        let strap = DeviceSettings(name: Located("strap"), address: Located(Self.address))
        #expect(recalled([strap], .zero) == ["x-c0ffee00000b"])
        let namesake = DeviceSettings(name: Located("x-c0ffee00000b"), address: Located(BluetoothAddress(value: 7)))
        #expect(recalled([namesake], .zero) == ["heart-c0ffee00000a"])
    }
}
