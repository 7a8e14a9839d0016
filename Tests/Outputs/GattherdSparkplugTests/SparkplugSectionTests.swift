import GattherdConfig
import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdSparkplug

@Suite struct SparkplugSectionTests {
    private func parse(_ lines: String) -> (SparkplugSettings?, [String]) {
        let text = "sparkplug:\n" + lines.split(separator: "\n").map { "  \($0)\n" }.joined()
        let (configuration, errors) = Configuration.parseLeniently(
            [ConfigSource(name: "/etc/gattherd/gattherd.yaml", text: text)],
            in: ConfigEnvironment(variables: [:], hostName: "lab"),
            outputs: [SparkplugOutput.self]
        )
        let summaries = errors.map { "\($0.place?.line ?? 0) \($0.problem.kind)" }
        return (configuration.outputs.first?.settings(of: SparkplugOutput.self), summaries)
    }

    @Test func `all keys of the section sparkplug are read`() throws {
        let (found, errors) = parse(
            """
            url: mqtts://broker.lan
            version: 3.1.1
            client_id: edge
            username: me
            password_file: secret
            group: Plant 1
            node: Hall 2
            primary_host: scada
            controls: false
            on_change: true
            tls: {ca: ca.pem}
            max_backlog: 5000
            """
        )
        #expect(errors == [])
        let settings = try #require(found)
        #expect(settings.mqtt.broker.port == 8883 && settings.mqtt.version == .v311)
        #expect(settings.mqtt.clientID == "edge" && settings.mqtt.username == "me")
        #expect(settings.mqtt.passwordFile?.value == "/etc/gattherd/secret")
        #expect(settings.mqtt.tls.ca?.value == "/etc/gattherd/ca.pem")
        #expect(settings.group == "Plant 1" && settings.node == "Hall 2" && settings.primaryHost == "scada")
        #expect(!settings.setsControls && settings.isByException)
    }

    @Test func `only the URL is required`() throws {
        let (found, errors) = parse("url: mqtt://localhost")
        #expect(errors == [])
        let settings = try #require(found)
        #expect(settings.group == "gattherd" && settings.node == "lab" && settings.primaryHost == nil)
        #expect(settings.mqtt.clientID == "gattherd-lab-sparkplug")
        #expect(settings.setsControls && !settings.isByException)
        #expect(SparkplugOutput.content(settings) == .readings)
    }

    @Test(arguments: [
        ("group: a", "1 missing_key"), ("url: mqtt://localhost\ngroup: a/b", "3 invalid_value"),
        ("url: mqtt://localhost\nnode: '#'", "3 invalid_value"),
        ("url: mqtt://localhost\nprimary_host: a+", "3 invalid_value"),
        ("url: mqtt://localhost\npassword: x", "3 secret_in_text"),
        ("url: mqtt://localhost\npassword_file: x", "3 missing_key"),
        ("url: mqtt://localhost\ntls: {ca: a}", "3 conflict"),
        ("url: mqtt://localhost\nretain: true", "3 unknown_key"),
    ])
    func `errors have their place`(lines: String, error: String) {
        #expect(parse(lines).1 == [error])
    }

    @Test func `an invalid CA file is an error`() throws {
        let folder = try TemporaryFolder()
        let (found, _) = parse("url: mqtts://localhost\ntls: {ca: '\(try folder.write("no", to: "ca.pem"))'}")
        let settings = try #require(found)
        #expect(SparkplugOutput.findings(settings).map(\.severity) == [.error])
    }
}
