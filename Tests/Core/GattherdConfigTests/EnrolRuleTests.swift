import GattherdConfig
import GattherdGATT
import GattherdModel
import Testing

@Suite struct EnrolRuleTests {
    private static let address = BluetoothAddress(value: 0xC0FF_EE00_000A)
    private static let heartRate = BluetoothUUID(0x180D)

    private func rule(_ members: String) throws -> EnrolRule {
        let source = ConfigSource(name: "a.yaml", text: "enrol: [{\(members)}]")
        let environment = ConfigEnvironment(variables: [:], hostName: "h")
        return try #require(try Configuration.parse([source], in: environment, outputs: []).enrol.first)
    }

    private static let peripherals: [(name: String?, rssi: Int?, isMet: Bool)] = [
        ("Polar H10", -60, true), ("polar H10", -60, false), ("Polar H10", -85, true), ("Polar H10", -86, false),
        (nil, -60, false), ("Polar H10", nil, false),
    ]

    @Test(arguments: peripherals)
    func `a match requires all its conditions`(
        peripheral: (name: String?, rssi: Int?, isMet: Bool)
    ) throws {
        let rule = try rule("match: {service: 180d, name: 'Polar*', rssi_at_least: -85}, name: '{address}'")
        #expect(
            rule.admits(
                services: [Self.heartRate, BluetoothUUID(0x180F)],
                named: peripheral.name,
                rssi: peripheral.rssi
            ) == peripheral.isMet
        )
        #expect(!rule.admits(services: [BluetoothUUID(0x180F)], named: peripheral.name, rssi: peripheral.rssi))
    }

    @Test(arguments: [(52, "", true), (53, "", false), (39, ", profiles: [heart-rate]", true)])
    func `a name pattern without room for an address is an error`(length: Int, more: String, isValid: Bool) throws {
        let start = String(repeating: "a", count: length)
        let template = more.isEmpty ? "\(start){address}" : "\(start)-{profile}-{address}"
        let text = "match: {service: 180d}, name: '\(template)'\(more)"
        if isValid {
            #expect(try rule(text).deviceName(for: Self.address, profile: "p") != nil)
        } else {
            let errors = #expect(throws: ConfigErrors.self) { try rule(text) }
            #expect(errors?.description.contains("a name has at most 64 bytes") == true)
        }
    }

    @Test func `a rule whose profile makes its names too long is an error`() {
        let template = String(repeating: "a", count: 45) + "-{profile}-{address}"
        let errors = #expect(throws: ConfigErrors.self) {
            try rule("match: {service: 180d}, name: '\(template)', profiles: [heart-rate]")
        }
        #expect(errors?.description.contains("a name has at most 64 bytes") == true)
    }

    @Test func `a match ignores other properties`() throws {
        let rule = try rule("match: {service: 180d}, name: '{address}'")
        #expect(rule.admits(services: [Self.heartRate], named: nil, rssi: nil))
    }

    @Test func `a model is asked for only if all other conditions hold`() throws {
        let rule = try rule("match: {name: 'GVH*', model: 'Govee *'}, name: '{address}', profiles: [govee]")
        #expect(rule.admits(services: [], named: "GVH5075", rssi: nil) { "Govee H5075" })
        #expect(!rule.admits(services: [], named: "GVH5075", rssi: nil) { "Acme H5075" })
        #expect(!rule.admits(services: [], named: "GVH5075", rssi: nil) { nil })
        var isAsked = false
        let model = {
            isAsked = true
            return "Govee H5075" as String?
        }
        #expect(!rule.admits(services: [], named: "other", rssi: nil, model: model))
        #expect(!isAsked)
    }

    private static let names: [(template: String, profile: String?, name: String?)] = [
        ("{address}", "x", "c0ffee00000a"), ("{address}", nil, "c0ffee00000a"),
        ("{profile}-{address}", "heart-rate", "heart-rate-c0ffee00000a"), ("{profile}-{address}", nil, nil),
        ("a_{address}_{profile}{profile}", "p", "a_c0ffee00000a_pp"),
        ("{profile}-{address}", String(repeating: "p", count: 52), nil),
    ]

    @Test(arguments: names)
    func `device names are slugs`(row: (template: String, profile: String?, name: String?)) throws {
        let rule = try rule("match: {service: 180d}, name: '\(row.template)'")
        #expect(rule.deviceName(for: Self.address, profile: row.profile) == row.name)
    }

    @Test func `rules that differ only in their match have one identity`() throws {
        let rule = try rule("match: {service: 180d}, name: 'a-{address}', profiles: [x, y]")
        let narrower = "match: {service: 180d, rssi_at_least: -60}, name: 'a-{address}', profiles: [x, y]"
        #expect(try self.rule(narrower).identity == rule.identity)
        for other in [
            "name: 'b-{address}', profiles: [x, y]", "name: 'a-{address}', profiles: [y, x]", "name: 'a-{address}'",
        ] {
            #expect(try self.rule("match: {service: 180d}, \(other)").identity != rule.identity)
        }
    }

    @Test func `a device of a rule has its profiles and its identity`() throws {
        let rule = try rule("match: {service: 180d}, name: 'a-{address}', profiles: [heart-rate]")
        let device = rule.device(named: "a-c0ffee00000a", Self.address)
        #expect(device.name.value == "a-c0ffee00000a" && device.address.value == Self.address)
        #expect(device.profiles?.map(\.value) == ["heart-rate"])
        #expect(device.rule == rule.identity)
    }

    @Test(arguments: [("1h", RetentionPeriod.atLeast(.seconds(3600))), ("forever", .forever)])
    func `a rule has a time after which devices are removed`(text: String, retention: RetentionPeriod) throws {
        let template = "match: {service: 180d}, name: '{address}'"
        #expect(try rule("\(template), forget_after: \(text)").forgetAfter == retention)
        #expect(try rule(template).forgetAfter == .atLeast(.seconds(30 * 86_400)))
    }
}
