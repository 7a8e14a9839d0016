import GattherdConfig
import GattherdProfiles
import TestKit
import Testing

@testable import GattherdGateway

@Suite struct StartFilesTests {
    @Test(arguments: [
        ("mqtt", "url: 'mqtts://broker', tls: {ca: CA}, username: u, password_file: SECRET", ["mqtt"]),
        ("sparkplug", "url: 'mqtts://broker', tls: {ca: CA}, username: u, password_file: SECRET", ["sparkplug"]),
        ("influx", "url: 'https://server', database: d, tls: {ca: CA}, token_file: SECRET", []),
        ("influx", "url: 'https://server', database: d, tls: {ca: CA}, username: u, password_file: SECRET", []),
        ("postgres", "url: 'postgresql://server/gattherd', ca_file: CA, password_file: SECRET", []),
    ])
    func `a new password of a broker waits for a restart; renewed certificates and other secrets do not`(
        section: String,
        keys: String,
        waiting: [String]
    ) throws {
        let folder = try TemporaryFolder()
        let (ca, secret) = (try folder.write("a", to: "ca.pem"), try folder.write("b", to: "secret"))
        let text = "\(section): {\(keys.replacing("CA", with: "'\(ca)'").replacing("SECRET", with: "'\(secret)'"))}"
        let configuration = try Configuration.parse(
            [ConfigSource(name: "gattherd.yaml", text: text)],
            in: ConfigEnvironment(variables: [:], hostName: "host"),
            outputs: OutputRegistry.definitions
        )
        var files = StartFiles(configuration, ProfileRegistry())
        try folder.write("another authority", to: "ca.pem")
        #expect(files.changedSections(ProfileRegistry()) == [])
        try folder.write("another secret", to: "secret")
        #expect(files.changedSections(ProfileRegistry()) == waiting)
    }
}
