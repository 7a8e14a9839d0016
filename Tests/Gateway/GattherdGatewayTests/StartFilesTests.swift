import GattherdConfig
import GattherdProfiles
import TestKit
import Testing

@testable import GattherdGateway

@Suite struct StartFilesTests {
    @Test func `a new password waits for a restart, a renewed certificate does not`() throws {
        let folder = try TemporaryFolder()
        let (ca, password) = (try folder.write("a", to: "ca.pem"), try folder.write("b", to: "password"))
        let text = "mqtt: {url: 'mqtts://broker', tls: {ca: '\(ca)'}, username: u, password_file: '\(password)'}"
        let configuration = try Configuration.parse(
            [ConfigSource(name: "gattherd.yaml", text: text)],
            in: ConfigEnvironment(variables: [:], hostName: "host"),
            outputs: []
        )
        var files = StartFiles(configuration, ProfileRegistry())
        try folder.write("another authority", to: "ca.pem")
        #expect(files.changedSections(ProfileRegistry()) == [])
        try folder.write("another password", to: "password")
        #expect(files.changedSections(ProfileRegistry()) == ["mqtt"])
    }
}
