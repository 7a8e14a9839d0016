import GattherdGATT
import Testing

@testable import GattherdSimulator

@Suite struct RadioFieldTests {
    private static func field(_ air: String, _ place: String) throws -> RadioField {
        let yaml = """
            air: {\(air)}
            gateways: [{name: west, at: [0, 0]}, {name: east, at: [40, 0]}]
            peripherals:
              - {name: p, address: 'C0:FF:EE:00:00:01', kind: battery, \(place)}
            """
        return RadioField(try Scenario(yaml, file: "test.yaml"))
    }

    private static let west = DeviceKey(adapter: 0, peripheral: 0)
    private static let east = DeviceKey(adapter: 1, peripheral: 0)
    private static let minute = (0..<600).map { Duration.milliseconds(100 * $0) }

    @Test(arguments: [("at: [0, 1]", -60), ("at: [10, 0]", -80), ("at: [-6, 8]", -80), ("at: [0, 0]", -40)])
    func `strength falls by 20 dB for each tenfold distance in the open`(place: String, strength: Int16) throws {
        let field = try Self.field("noise: 0, exponent: 2", place)
        #expect(field.strength(Self.west, at: .seconds(7)) == strength)
    }

    @Test func `both ends of the sensitivity limit are exact`() throws {
        // 10 m and an exponent of 3 are 30 dB: exactly -90 dBm.
        let field = try Self.field("noise: 0, exponent: 3, sensitivity: -90", "at: [10, 0]")
        #expect(field.hears(Self.west, at: .zero) && field.reaches(Self.west, at: .zero))
        let beyond = try Self.field("noise: 0, exponent: 3, sensitivity: -90", "at: [10.01, 0]")
        #expect(!beyond.hears(Self.west, at: .zero) && !beyond.reaches(Self.west, at: .zero))
    }

    @Test func `noise varies the strength by its standard deviation, and does not break links`() throws {
        let field = try Self.field("noise: 3, exponent: 2, sensitivity: -81", "at: [10, 0]")
        let strengths = Self.minute.compactMap { field.strength(Self.west, at: $0).map(Double.init) }
        let mean = strengths.reduce(0, +) / Double(strengths.count)
        let variance = strengths.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(strengths.count)
        #expect(abs(mean + 80) < 0.5)
        #expect((2.5...3.5).contains(variance.squareRoot()))
        #expect(strengths.allSatisfy { abs($0 + 80) <= 11 })
        #expect(Self.minute.contains { !field.hears(Self.west, at: $0) })
        #expect(Self.minute.allSatisfy { field.reaches(Self.west, at: $0) })
    }

    @Test func `bodies come and go, apart for each gateway`() throws {
        let field = try Self.field(
            "noise: 0, exponent: 2, bodies: {attenuation: 12, share: 0.5, stay: 5s}",
            "at: [20, 0]"
        )
        let free = try #require(try Self.field("noise: 0, exponent: 2", "at: [20, 0]").strength(Self.west, at: .zero))
        let west = Self.minute.compactMap { field.strength(Self.west, at: $0) }
        let east = Self.minute.compactMap { field.strength(Self.east, at: $0) }
        #expect(Set(west) == [free, free - 12])
        #expect(west != east)
        let changes = zip(west, west.dropFirst()).enumerated().filter { $1.0 != $1.1 }.map(\.offset)
        #expect(changes.allSatisfy { ($0 + 1).isMultiple(of: 50) })
    }

    @Test func `equal seeds give equal fields, and others do not`() throws {
        let fields = try [1, 1, 2].map { seed in
            try Self.field("seed: \(seed), bodies: {attenuation: 9}", "path: {0s: [0, 0], 60s: [40, 0]}")
        }
        let strengths = fields.map { field in Self.minute.map { field.strength(Self.east, at: $0) } }
        #expect(strengths[0] == strengths[1])
        #expect(strengths[0] != strengths[2])
    }

    @Test func `a path that ends at its start is repeated`() {
        let start = ScenarioPosition(x: 0, y: 0)
        let end = ScenarioPosition(x: 10, y: 20)
        let round = WalkingPath([
            Waypoint(time: .seconds(5), position: start), Waypoint(time: .seconds(15), position: end),
            Waypoint(time: .seconds(25), position: start),
        ])
        let middle = ScenarioPosition(x: 5, y: 10)
        #expect(
            [0, 5, 10, 15, 20, 25, 30, 130].map { round.position(at: .seconds($0)) } == [
                start, start, middle, end, middle, start, middle, middle,
            ]
        )
        let way = WalkingPath([
            Waypoint(time: .zero, position: start), Waypoint(time: .seconds(10), position: end),
        ])
        #expect([5, 10, 100].map { way.position(at: .seconds($0)) } == [middle, end, end])
    }

    @Test func `a gateway's peripherals are all that enter its range`() throws {
        // -60 dBm at 1 m and an exponent of 2 reach 31.6 m.
        let scenario = try Scenario(
            """
            air: {exponent: 2, sensitivity: -90}
            gateways: [{name: west, at: [0, 0]}, {name: east, at: [60, 0]}]
            peripherals:
              - {name: near, address: 'C0:FF:EE:00:00:01', kind: battery, at: [31, 0]}
              - {name: far, address: 'C0:FF:EE:00:00:02', kind: battery, at: [32, 40]}
              - {name: passing, address: 'C0:FF:EE:00:00:03', kind: battery, path: {0s: [30, 90], 9s: [30, -90]}}
              - {name: bound, address: 'C0:FF:EE:00:00:04', kind: battery, at: [30, 0], adapters: [east/hci0]}
            """,
            file: "s.yaml"
        )
        let names = scenario.gateways.map { scenario.peripherals(inReachOf: $0).map(\.name) }
        #expect(names == [["near", "passing"], ["near", "passing", "bound"]])
    }

    static let mistakes: [(yaml: String, error: String)] = [
        ("gateways: [{at: [0, 0]}]", "1:12: error: a gateway needs 'name'"),
        (
            "gateways: [{name: a}]",
            "1:12: error: a gateway needs its position in metres; write for example at: [12, 3.5]"
        ),
        (
            "gateways: [{name: a, at: [1]}]",
            "1:26: error: a position has two coordinates in metres; write for example [12, 3.5]"
        ),
        ("gateways: [{name: a, at: [1, x]}]", "1:30: error: 'x' is not a number of metres from -10000 to 10000"),
        ("gateways: [{name: a, at: [1, 2]}, {name: a, at: [1, 2]}]", "1:35: error: there is another gateway 'a'"),
        (
            "gateways: [{name: a, at: [1, 2], adapters: [{}, {name: hci0}]}]",
            "1:49: error: there is another adapter 'hci0'"
        ),
        ("gateways: [{name: a b, at: [1, 2]}]", "1:19: error: 'a b' is not \(ScenarioValue.nameWords)"),
        (
            "gateways: [{name: a, at: [1, 2]}]\nadapters: [{}]",
            "2:11: error: each of the 'gateways' has adapters of its own; move 'adapters' there"
        ),
        ("air: {seed: 3}", "1:6: error: 'air' needs 'gateways' with positions; add them, or remove it"),
        ("air: {exponent: 9}\ngateways: [{name: a, at: [1, 2]}]", "1:17: error: '9' is not a number from 1 to 6"),
        ("air: {sed: 3}\ngateways: [{name: a, at: [1, 2]}]", "1:7: error: unknown key 'sed'; did you mean 'seed'?"),
        (
            "air: {bodies: {share: 0.5}}\ngateways: [{name: a, at: [1, 2]}]",
            "1:15: error: 'bodies' needs 'attenuation' in dB; write for example attenuation: 12"
        ),
        (
            "peripherals: [{\(strap), at: [1, 2]}]",
            "1:77: error: a position needs 'gateways' with positions; add them, or remove this one"
        ),
        (
            "gateways: [{name: a, at: [1, 2]}]\nperipherals: [{\(strap)}]",
            "2:15: error: with 'gateways', a peripheral needs 'at' or 'path'; write at: [3, 1.5]"
        ),
        (
            "gateways: [{name: a, at: [1, 2]}]\nperipherals: [{\(strap), at: [1, 2], path: {0s: [1, 2]}}]",
            "2:91: error: a peripheral has 'at' or 'path', not both; remove one"
        ),
        (
            "gateways: [{name: a, at: [1, 2]}]\nperipherals: [{\(strap), path: {5s: [1, 2], 5s: [1, 3]}}]",
            "2:92: error: the key '5s' is already in line 2"
        ),
        (
            "gateways: [{name: a, at: [1, 2]}]\nperipherals: [{\(strap), path: {5s: [1, 2], 4s: [1, 3]}}]",
            "2:92: error: the times of 'path' must ascend; move this one up"
        ),
        (
            "gateways: [{name: a, at: [1, 2]}]\nperipherals: [{\(strap), path: [1, 2]}]",
            "2:79: error: 'path' must be a mapping of times to positions; write for example {0s: [0, 2], 30s: [25, 2]}"
        ),
        (
            "gateways: [{name: a, at: [1, 2]}]\nperipherals: [{\(strap), at: [1, 2], adapters: [b]}]",
            "2:96: error: 'b' is not a gateway of this scenario"
        ),
    ]
    private static let strap = "name: p, address: 'C0:FF:EE:00:00:01', kind: heart-rate"

    @Test(arguments: mistakes)
    func `a wrong site is reported with line, column and remedy`(yaml: String, error: String) {
        let thrown = #expect(throws: ScenarioError.self) { try Scenario(yaml, file: "s.yaml") }
        let problems = thrown?.problems.map(\.description) ?? []
        #expect(problems.contains { $0.hasPrefix("s.yaml:" + error) }, "\(problems)")
    }
}
