import Testing

@testable import GattherdConfig

/// The words that are suggested for misspelt ones.
@Suite struct SuggestionTests {
    @Test func `no word is sought for a mistake that is left out`() {
        let file = ConfigFile(ConfigSource(name: "gattherd.yaml", text: ""))
        let findings = ConfigFindings(files: [file.name])
        let substitution = Substitution(variables: [:])
        let reader = SectionReader([], title: "", place: nil, findings: findings, substitution: substitution)
        for line in 1...1000 {
            #expect(reader.nearest(to: "gatewy", among: ["gateway"]) == "gateway")
            findings.report(.conflict("a mistake"), at: ConfigPlace(file, line: line, column: 1, width: 1))
        }
        #expect(findings.isFull && reader.nearest(to: "gatewy", among: ["gateway"]) == nil)
    }

    @Test func `thousands of alerts with wrong devices are read, the first ones with suggestions`() throws {
        let devices = (0..<20).map { "{name: sensor-\($0), address: 'C0:FF:EE:00:00:\(10 + $0)'}" }
        let alerts = (0..<2500).map { "{name: a\($0), device: sensr-\($0), silent_for: 1h}" }
        let text = "devices: [\(devices.joined(separator: ", "))]\nalerts: [\(alerts.joined(separator: ", "))]"
        let found = errors(in: text)
        #expect(found.count == 1001)
        #expect(found.first?.problem.description.contains("did you mean 'sensor-0'?") == true)
        #expect(found.last?.problem.description == "1500 more mistakes are left out; correct these first")
    }
}
