import FoundationEssentials
import GattherdConfig
import GattherdGateway
import TestKit
import Testing

/// The example that people copy: `config/gattherd.yaml`.
@Suite struct ExampleTests {
    @Test func `the example is valid and connects nothing`() throws {
        let parsed = try parse([example(try text())])
        #expect(parsed.devices.isEmpty && parsed.enrol.isEmpty)
        #expect(parsed.mqtt == nil && parsed.http == nil)
        #expect(parsed == (try parse([example("")])))
    }

    @Test func `the example shows a device and a broker`() throws {
        let all = try text().split(separator: "\n").map(uncommented).filter { !$0.hasPrefix("  tls:") }
        let parsed = try parse([example(all.joined(separator: "\n"))])
        #expect(parsed.devices.map(\.name.value) == ["strap", "garden"])
        #expect(parsed.mqtt?.broker == BrokerAddress(host: "localhost", port: 1883))
    }

    @Test func `each commented key of the example is valid, except that TLS needs another URL`() throws {
        let all = try text().split(separator: "\n", omittingEmptySubsequences: false).map(uncommented)
        #expect(errors(in: [example(all.joined(separator: "\n"))]).map(\.problem.kind) == ["conflict"])
    }

    @Test func `the defaults in the example are those of the reader`() throws {
        let all = try text().split(separator: "\n").map(uncommented).filter { !$0.hasPrefix("  tls:") }
        let shown = try parse([example(all.joined(separator: "\n"))])
        let plain = try parse([example("gateway: lab-1\nmqtt: {url: \"mqtt://localhost:1883\"}")])
        #expect(shown.bluetooth == plain.bluetooth)
        #expect(shown.history == plain.history)
        #expect(shown.log == plain.log)
        #expect(shown.mqtt?.clientID == plain.mqtt?.clientID)
        #expect(shown.mqtt?.homeAssistant.isDiscoverable == plain.mqtt?.homeAssistant.isDiscoverable)
        #expect(shown.mqtt?.homeAssistant.prefix == plain.mqtt?.homeAssistant.prefix)
        #expect(shown.mqtt?.version == plain.mqtt?.version)
        #expect(shown.mqtt?.retains == plain.mqtt?.retains)
        #expect(shown.mqtt?.backlogRate == plain.mqtt?.backlogRate)
        #expect(shown.mqtt?.baseTopic == plain.mqtt?.baseTopic)
        #expect(shown.mqtt?.publishesDescriptions == plain.mqtt?.publishesDescriptions)
    }

    @Test(
        arguments: [
            ("zzz: 1", nil), ("bluetooth: {zzz: 1}", "bluetooth"), ("profiles: {zzz: 1}", "profiles"),
            ("devices: [{zzz: 1}]", "devices"),
            ("devices: [{name: a, address: C0:FF:EE:00:00:01, publish: {zzz: 1}}]", "mqtt"),
            ("alerts: [{zzz: 1}]", "alerts"), ("enrol: [{zzz: 1}]", "enrol"), ("enrol: [{match: {zzz: 1}}]", "enrol"),
            ("history: {zzz: 1}", "history"),
            ("history: {keep: {zzz: 1}}", "history"), ("history: {backlog: {zzz: 1}}", "history"),
            ("mqtt: {zzz: 1}", "mqtt"), ("mqtt: {tls: {zzz: 1}}", "mqtt"), ("mqtt: {publish: {zzz: 1}}", "mqtt"),
            ("mqtt: {home_assistant: {zzz: 1}}", "mqtt"), ("http: {zzz: 1}", "http"),
            ("influx: {batch: {zzz: 1}}", "influx"), ("influx: {tls: {zzz: 1}}", "influx"),
            ("log: {zzz: 1}", "log"), ("fleet: {zzz: 1}", "fleet"),
        ] as [(String, String?)] + OutputRegistry.definitions.map { ("\($0.section): {zzz: 1}", $0.section) }
    )
    func `the example has every key`(wrong: String, section: String?) throws {
        let known = errors(in: wrong).flatMap { error in
            if case .unknownKey("zzz", _, _, let known) = error.problem { known } else { [String]() }
        }
        #expect(!known.isEmpty)
        let part = try part(section)
        for key in known where key != "streams" {
            #expect(part.contains { $0 == key }, "\(key) of \(section ?? "the whole")")
        }
    }

    /// The words of a section of the example, comments and all.
    private func part(_ section: String?) throws -> [Substring] {
        var lines = try text().split(separator: "\n", omittingEmptySubsequences: false)
        if let section {
            let start = try #require(lines.firstIndex { $0 == section + ":" || $0 == "# \(section):" })
            lines = Array(lines[start...].prefix { !$0.isEmpty })
        }
        return lines.flatMap { $0.split { !$0.isLetter && !$0.isNumber && $0 != "_" } }
    }

    private func example(_ text: String) -> ConfigSource {
        ConfigSource(name: "gattherd.yaml", text: text)
    }

    private func text() throws -> String {
        String(
            decoding: try Data(contentsOf: Checkout.root.appending(path: "config/gattherd.yaml")),
            as: UTF8.self
        )
    }

    /// The line without its `#` if a key follows it.
    private func uncommented(_ line: Substring) -> String {
        let indent = line.prefix { $0 == " " }
        let rest = line[indent.endIndex...]
        guard rest.hasPrefix("# ") else { return String(line) }
        let body = rest.dropFirst(2)
        let words = body.drop { $0 == " " || $0 == "-" }.split(separator: " ")
        let isKey = words.first.map { $0.hasSuffix(":") && $0.first?.isLowercase == true } ?? false
        return isKey ? String(indent + body) : String(line)
    }
}
