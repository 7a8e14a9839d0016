import FoundationEssentials
import GattherdGATT
import GattherdYAML
import TestKit
import Testing

@testable import GattherdSimulator

@Suite struct ScenarioTests {
    private static let strap = "name: p, address: 'C0:FF:EE:00:00:01', kind: heart-rate"

    @Test func `an empty scenario has one adapter and BlueZ's timing`() throws {
        let scenario = try Scenario("", file: "empty.yaml")
        #expect(scenario.adapters.map(\.name) == ["hci0"])
        #expect(scenario.peripherals == [])
        #expect(scenario.timing == Timing())
    }

    @Test func `a full scenario is parsed into its values`() throws {
        let path = Checkout.root.appending(path: "config/scenarios/lab.yaml").path
        let scenario = try Scenario(String(contentsOfFile: path, encoding: .utf8), file: path)
        #expect(scenario.peripherals.map(\.name) == ["strap", "runner", "rower", "dial", "weather", "tag"])
        #expect(scenario.peripherals.map(\.address.description).prefix(3).last == "C0:FF:EE:00:00:03")
        #expect(
            scenario.peripherals.prefix(5).allSatisfy {
                $0.services.dropFirst().map(\.uuid.description) == ["180f", "180a"]
            }
        )
        #expect(
            scenario.peripherals[4].services.first?.characteristics.map(\.uuid.description) == [
                "2a6e", "2a6f", "2a6d",
            ]
        )
        let tag = try #require(scenario.peripherals.last?.advertising)
        #expect(!tag.isConnectable)
        #expect(tag.manufacturerData[0x0499]?.count == 6)
    }

    @Test(arguments: ["lab", "fleet", "herd", "faults", "records"])
    func `the installed scenarios are valid`(name: String) throws {
        let path = Checkout.root.appending(path: "config/scenarios/\(name).yaml").path
        let scenario = try Scenario(String(contentsOfFile: path, encoding: .utf8), file: path)
        #expect(!scenario.peripherals.isEmpty)
        #expect(name != "herd" || scenario.peripherals.count == 200)
    }

    @Test func `the fleet has three gateways, and a walker that comes into the reach of each`() throws {
        let path = Checkout.root.appending(path: "config/scenarios/fleet.yaml").path
        let scenario = try Scenario(String(contentsOfFile: path, encoding: .utf8), file: path)
        #expect(scenario.gateways.map(\.name) == ["west", "middle", "east"])
        #expect(
            scenario.gateways.map { scenario.peripherals(inReachOf: $0).map(\.name) } == [
                ["walker", "strap-west", "tag"], ["walker", "tag", "tag-east"], ["walker", "strap-east", "tag-east"],
            ]
        )
    }

    @Test func `the scenarios in the README are valid`() throws {
        let path = Checkout.root.appending(path: "Sources/Tools/GattherdSimulator/README.md").path
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let blocks = text.components(separatedBy: "```yaml\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        #expect(blocks.count == 4)
        for block in blocks { #expect(try !Scenario(block, file: path).peripherals.isEmpty) }
    }

    @Test(arguments: [("realistic", Duration.seconds(2)), ("quick", .milliseconds(50))])
    func `timing can be a single word`(word: String, disconnect: Duration) throws {
        #expect(try Scenario("timing: \(word)", file: "s.yaml").timing.disconnect == disconnect)
    }

    @Test func `a custom peripheral has the services and values of its scenario`() throws {
        let scenario = try Scenario(
            """
            timing: {disconnect: 2s, temporary_timeout: 5s}
            adapters: [{name: hci1, address: '00:11:22:33:44:55', slots: 3}]
            peripherals:
              - name: odd
                address: C0:FF:EE:00:00:01
                address_type: public
                kind: custom
                adapters: [hci1]
                present: false
                advertise: {name: Odd, services: [fff0], service_data: {fff0: '01'}, rssi: -80}
                services:
                  - uuid: fff0
                    characteristics:
                      - uuid: fff1
                        properties: [read, notify, write]
                        value: '00'
                        notify: ['01 02', '']
                        rate: 4
                        write: {min_length: 1, max_length: 2, notify_change: true}
                        descriptors: [{uuid: 2901, value: '41'}]
            """,
            file: "odd.yaml"
        )
        let odd = try #require(scenario.peripherals.first)
        let characteristic = try #require(odd.services.first?.characteristics.first)
        #expect(scenario.timing.disconnect == .seconds(2))
        #expect(scenario.adapters.first?.slots == 3)
        #expect((odd.addressType, odd.isPresent, odd.adapters) == ("public", false, ["hci1"]))
        #expect(odd.advertising.serviceData == [BluetoothUUID(0xFFF0): [[1]]])
        #expect(characteristic.source == .list([[1, 2], []]))
        #expect(characteristic.rate == 4)
        #expect(characteristic.writing.lengths == 1...2)
        #expect(characteristic.descriptors == [DescriptorSpec(BluetoothUUID(0x2901), value: [0x41])])
    }

    static let mistakes: [(yaml: String, error: String)] = [
        ("peripherals: [{\(strap), rat: 3}]", "1:73: error: unknown key 'rat'; did you mean 'rate'?"),
        ("peripherals: [{\(strap), rate: fast}]", "1:79: error: 'fast' is not \(ScenarioValue.rateWords)"),
        ("peripherals: [{\(strap), battery: 101}]", "1:82: error: '101' is not a whole number from 0 to 100"),
        ("peripherals: [{\(strap), connect_latency: 5}]", "1:90: error: '5' is not \(ScenarioValue.durationWords)"),
        ("peripherals: [{\(strap), adapters: [hci7]}]", "1:84: error: 'hci7' is not an adapter of this scenario"),
        ("peripherals: [{name: p, kind: battery}]", "1:15: error: a peripheral needs 'address'"),
        ("peripherals: [{address: 'C0:FF:EE:00:00:01'}]", "1:15: error: a peripheral needs 'name'"),
        ("peripherals: [strap]", "1:15: error: a peripheral must be a mapping, not a text"),
        ("peripherals: 3", "1:14: error: 'peripherals' must be a list, not a text"),
        ("adapters: [{name: usb}]", "1:19: error: 'usb' is not an adapter's name; write hci and a number"),
        ("adapters: [{}, {name: hci0}]", "1:16: error: there is another adapter 'hci0'"),
        ("timing: fast", "1:9: error: 'fast' is not one of realistic, quick"),
        (
            "peripherals: [{\(strap), passkey: 1000000}]",
            "1:82: error: '1000000' is not a whole number from 0 to 999999"
        ),
        ("timing: {connect_timeout: soon}", "1:27: error: 'soon' is not \(ScenarioValue.durationWords)"),
        ("peripherals: [{\(strap)}, {\(strap)}]", "1:1: error: there are two peripherals 'p'"),
        ("a: [", "2:1: error: the '[' or '{' of line 1 is not closed"),
    ]

    @Test(arguments: mistakes)
    func `an error is reported with file, line and column`(yaml: String, error: String) {
        let thrown = #expect(throws: ScenarioError.self) { try Scenario(yaml, file: "s.yaml") }
        #expect(thrown?.problems.map(\.description).contains("s.yaml:" + error) == true, "\(thrown?.description ?? "")")
    }

    @Test func `all errors are reported in order`() {
        let thrown = #expect(throws: ScenarioError.self) {
            try Scenario("peripherals:\n  - {name: a b, kind: toaster, address: x}\ntimings: {}", file: "s.yaml")
        }
        #expect(thrown?.problems.map(\.position.line) == [2, 2, 2, 3])
    }

    static let patterns: [(yaml: String, first: String, second: String)] = [
        ("", "003c", "003d"),
        (", format: u16", "010001", "010101"),
        (", contact: yes", "063c", "063d"),
        (", contact: no", "043c", "043d"),
        (", energy: true", "083c0000", "083d0100"),
        (", rr: 2", "103c58025902", "103d5a025b02"),
        (", format: u16, energy: true, rr: 1, contact: yes", "1f000100005802", "1f010101005902"),
    ]

    @Test(arguments: patterns)
    func `heart rate payloads contain their sequence numbers`(yaml: String, first: String, second: String) throws {
        let scenario = try Scenario("peripherals: [{\(Self.strap)\(yaml)}]", file: "s.yaml")
        let source = try #require(scenario.peripherals.first?.services.first?.characteristics.first?.source)
        #expect(Hexadecimal.text(source.payload(0, stored: []).span) == first)
        #expect(Hexadecimal.text(source.payload(1, stored: []).span) == second)
    }

    @Test func `waves reverse at their ends`() {
        let wave = PayloadSource.wave(octets: 2, from: -1, through: 1)
        #expect((0..<5).map { wave.payload($0, stored: []) } == [[255, 255], [0, 0], [1, 0], [0, 0], [255, 255]])
    }

    @Test func `a thermometer indicates a FLOAT in tenths of a degree`() {
        #expect(PayloadSource.thermometer.payload(1, stored: []) == [0, 0x69, 0x01, 0x00, 0xFF])
    }

    @Test func `a replay has the services, values and pauses of its capture`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "replay-\(UInt64.random(in: 0...(.max)))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let line = { (time: String, source: String, hex: String) in
            #"{"ts":"2026-01-01T00:00:\#(time)Z","service":"180f","characteristic":"2a19","#
                + #""source":"\#(source)","hex":"\#(hex)"}"#
        }
        let capture = [
            #"{"capture":1,"address":"C0:FF:EE:00:00:05","name":"B","services":[{"uuid":"180f","characteristics":"#
                + #"[{"uuid":"2a19","properties":["read","notify"]}]}]}"#,
            line("01", "read", "50"), line("02", "notify", "51"), line("03", "notify", "52"),
            line("06", "notify", "53"),
        ]
        try (capture.joined(separator: "\n") + "\n").write(
            to: folder.appending(path: "b.jsonl"),
            atomically: false,
            encoding: .utf8
        )
        let file = folder.appending(path: "s.yaml").path
        let spec = try #require(try Scenario("peripherals: [{name: b, replay: b.jsonl}]", file: file).peripherals.first)
        #expect(spec.address == BluetoothAddress("C0:FF:EE:00:00:05"))
        #expect(spec.advertising.name == "B")
        #expect(spec.advertising.services == [0x180F])
        let battery = try #require(spec.services.first?.characteristics.first)
        #expect(battery.properties == [.read, .notify])
        #expect(battery.value == [0x50])
        #expect((0..<4).map { battery.source.payload($0, stored: []) } == [[0x51], [0x52], [0x53], [0x51]])
        #expect(
            (0..<4).map { battery.source.pause(after: $0) } == [.seconds(1), .seconds(3), .seconds(2), .seconds(1)]
        )
        #expect(battery.rate == 0.5)

        let error = #expect(throws: ScenarioError.self) {
            try Scenario("peripherals: [{name: b, replay: nothing.jsonl}]", file: file)
        }
        #expect(error?.description.contains("s.yaml:1:33: error: cannot read") == true)
    }
}
