import FoundationEssentials
import GattherdConfig
import Testing

/// The example that people copy: `config/gattherd.yaml`.
@Suite struct ExampleTests {
    @Test func `The example is good as it is, and warns of nothing`() throws {
        let parsed = try parse([example(try text())])
        #expect(parsed.warnings.isEmpty)
        #expect(parsed.configuration.devices.map(\.name.value) == ["strap"])
        #expect(parsed.configuration.mqtt?.broker == BrokerAddress(host: "localhost", port: 1883))
    }

    @Test func `Each key that the example shows is one, and only TLS needs another URL`() throws {
        let all = try text().split(separator: "\n", omittingEmptySubsequences: false).map(uncommented)
        #expect(errors(in: [example(all.joined(separator: "\n"))]).map(\.problem.kind) == ["conflict"])
    }

    @Test func `What the example calls a default is the default`() throws {
        let all = try text().split(separator: "\n").map(uncommented).filter { !$0.hasPrefix("  tls:") }
        let shown = try parse([example(all.joined(separator: "\n"))]).configuration
        let plain = try parse([example(try text())]).configuration
        #expect(shown.bluetooth == plain.bluetooth)
        #expect(shown.history == plain.history)
        #expect(shown.log == plain.log)
        #expect(shown.mqtt?.clientID == plain.mqtt?.clientID)
        #expect(shown.mqtt?.homeAssistant == plain.mqtt?.homeAssistant)
        #expect(shown.mqtt?.version == plain.mqtt?.version)
        #expect(shown.mqtt?.retains == plain.mqtt?.retains)
        #expect(shown.mqtt?.backlogRate == plain.mqtt?.backlogRate)
    }

    private func example(_ text: String) -> ConfigSource {
        ConfigSource(name: "gattherd.yaml", text: text)
    }

    private func text() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return String(
            decoding: try Data(contentsOf: root.appending(path: "config/gattherd.yaml")),
            as: UTF8.self
        )
    }

    /// The line without its `#` when a key stands behind it.
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
