import GattherdConfig
import Glibc
import TestKit
import Testing

@testable import GattherdGateway

/// Tests the findings about files that sections of outputs name.
@Suite struct OutputFilesTests {
    private func findings(_ text: String) throws -> [String] {
        let configuration = try Configuration.parse(
            [ConfigSource(name: "gattherd.yaml", text: text)],
            in: ConfigEnvironment(variables: [:], hostName: "host"),
            outputs: OutputRegistry.definitions
        )
        return configuration.outputFindings.map { "\($0.severity) \($0.problem.kind)" }
    }

    private static let sections = [
        "influx: {url: 'http://localhost', database: d, token_file: FILE}",
        "influx: {url: 'http://localhost', database: d, username: u, password_file: FILE}",
        "sparkplug: {url: 'mqtt://localhost', username: u, password_file: FILE}",
    ]

    @Test(arguments: sections)
    func `a secret that others can read is a warning, one that cannot be read an error`(section: String) throws {
        let folder = try TemporaryFolder()
        let secret = try folder.write("secret\n", to: "secret")
        let text = section.replacing("FILE", with: "'\(secret)'")
        #expect(unsafe chmod(secret, 0o640) == 0)
        #expect(try findings(text) == [])
        #expect(unsafe chmod(secret, 0o644) == 0)
        #expect(try findings(text) == ["warning exposed_secret"])
        #expect(unsafe unlink(secret) == 0)
        #expect(try findings(text) == ["error unusable_file"])
    }

    @Test(arguments: [
        "influx: {url: 'https://localhost', database: d, tls: {ca: /no/ca, certificate: /no/cert, key: /no/key}}",
        "sparkplug: {url: 'mqtts://localhost', tls: {ca: /no/ca, certificate: /no/cert, key: /no/key}}",
    ])
    func `each missing file for TLS is one error`(text: String) throws {
        #expect(try findings(text) == Array(repeating: "error unusable_file", count: 3))
    }

    @Test(arguments: ["pw\n", "pw\r\n", "pw", "pw\r"])
    func `a line ends with LF, or with CR and LF`(text: String) throws {
        let folder = try TemporaryFolder()
        #expect(SecretFile(path: try folder.write(text, to: "secret")).firstLine == "pw")
        #expect(SecretFile(path: try folder.write("a\r\n" + text, to: "secret")).secondLine == "pw")
    }
}
