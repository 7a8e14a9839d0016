import Foundation
import GattherdConfig
import GattherdHTTPClient
import GattherdInflux
import GattherdLog
import GattherdModel
import GattherdOutputs
import Glibc
import TestKit
import Testing

struct InfluxSettingsTests {
    private func parse(_ lines: String) -> (InfluxSettings?, [String]) {
        let text = "influx:\n" + lines.split(separator: "\n").map { "  \($0)\n" }.joined()
        let (configuration, errors) = Configuration.parseLeniently(
            [ConfigSource(name: "/etc/gattherd/gattherd.yaml", text: text)],
            in: ConfigEnvironment(variables: [:], hostName: "lab"),
            outputs: [InfluxOutput.self]
        )
        let summaries = errors.map { "\($0.place?.line ?? 0) \($0.problem.kind)" }
        return (configuration.outputs.first?.settings(of: InfluxOutput.self), summaries)
    }

    @Test func `all keys of the section influx are read`() throws {
        let (found, errors) = parse(
            """
            url: https://db.lan:8086
            bucket: home
            org: me
            token_file: influx-token
            measurement: ble_{stream}
            gzip: false
            batch: {entries: 10, interval: 30s}
            tls: {ca: ca.pem, certificate: c.pem, key: c.key}
            max_backlog: 1000000
            """
        )
        #expect(errors == [])
        let configuration = try #require(found)
        #expect(configuration.batchEntries == 10 && configuration.batchInterval == .seconds(30))
        let options = configuration.options(gateway: "lab", .token("t"))
        #expect(options.writeURL == "https://db.lan:8086/api/v2/write?org=me&bucket=home&precision=ns")
        #expect(!options.compresses && options.tls.ca == "/etc/gattherd/ca.pem")
        #expect(options.measurement == MeasurementName("ble_{stream}"))
    }

    @Test func `the defaults are few keys`() throws {
        let (found, errors) = parse("url: http://localhost:8086\ndatabase: home\nretention_policy: weeks")
        #expect(errors == [])
        let options = try #require(found).options(gateway: "lab", nil)
        #expect(options.writeURL == "http://localhost:8086/write?db=home&rp=weeks&precision=ns")
        #expect(options.compresses && options.measurement == .stream)
    }

    @Test(arguments: [
        ("database: home", "1 missing_key"), ("url: http://localhost", "1 missing_key"),
        ("url: localhost:8086\ndatabase: home", "2 invalid_value"),
        ("url: http://me:pw@localhost\ndatabase: home", "2 secret_in_text"),
        ("url: http://localhost\ndatabase: home\nbucket: home", "4 conflict"),
        ("url: http://localhost\ndatabase: home\norg: me", "4 missing_key"),
        ("url: http://localhost\nbucket: home\nretention_policy: x", "4 missing_key"),
        ("url: http://localhost\ndatabase: home\ntoken: x", "4 secret_in_text"),
        ("url: http://localhost\ndatabase: home\npassword: x", "4 secret_in_text"),
        ("url: http://localhost\ndatabase: home\nusername: x", "4 missing_key"),
        ("url: http://localhost\ndatabase: home\npassword_file: x", "4 missing_key"),
        ("url: http://localhost\ndatabase: home\ntls: {ca: x}", "4 conflict"),
        ("url: https://localhost\ndatabase: home\ntls: {key: x}", "4 missing_key"),
        ("url: http://localhost\ndatabase: home\nmeasurement: \"{metric}\"", "4 invalid_value"),
        ("url: http://localhost\ndatabase: home\nbatch: {entries: 0}", "4 invalid_value"),
        ("url: http://localhost\ndatabase: home\ntokenfile: x", "4 unknown_key"),
    ]) func `mistakes are reported at their place`(lines: String, expected: String) {
        #expect(parse(lines).1 == [expected])
    }

    @Test(arguments: [("http://localhost", 0), ("https://db.lan", 0), ("http://db.lan", 1)])
    func `a secret that goes through a network in plain text is a warning`(url: String, expected: Int) throws {
        let (found, _) = parse("url: \(url)\ndatabase: home\ntoken_file: /token")
        let findings = InfluxOutput.findings(try #require(found))
        #expect(findings.count == expected)
        #expect(findings.allSatisfy { $0.severity == .warning && $0.problem.kind == "exposed_secret" })
    }

    @Test func `the first lines of the files are the credentials`() throws {
        let folder = try TemporaryFolder()
        let context = OutputContext(
            name: "influx",
            kind: "influx",
            gateway: "lab",
            journal: MemoryJournal(),
            log: Log(threshold: .error) { _ in },
            record: { _ in },
            readSecret: { (path, _) throws(OutputError) in
                guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                    throw OutputError("no file")
                }
                return String(text.prefix { $0 != "\n" })
            }
        )
        for (text, isUsable) in [
            ("t0ken\nmore\n", true), ("t0ken\r", true), ("", false), ("\n", false), ("a\tb", false),
        ] {
            let file = try folder.write(text, to: "token")
            let (found, _) = parse("url: http://localhost:8086\nbucket: home\ntoken_file: \(file)")
            let output = try? InfluxOutput.make(try #require(found), context)
            #expect((output != nil) == isUsable, "\(text)")
            #expect(output?.status.target ?? "http://localhost:8086" == "http://localhost:8086")
        }
    }
}
