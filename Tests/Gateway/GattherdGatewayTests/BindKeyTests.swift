import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdModel
import GattherdProfiles
import Glibc
import TestKit
import Testing

/// The bind keys of devices with native profiles.
@Suite(.timeLimit(.minutes(2))) struct BindKeyTests {
    private let folder: TemporaryFolder
    private let registry: ProfileRegistry

    init() async throws {
        folder = try TemporaryFolder()
        let source = try String(
            contentsOf: Checkout.root.appending(path: "Plugins/Examples/garden-beacon.c"),
            encoding: .utf8
        )
        registry = try ProfileRegistry.load(paths: [try await SharedLibrary.build(source, to: "garden.so", in: folder)])
    }

    private func findings(_ key: String) throws -> [ConfigError] {
        let path = try folder.write(key + "\n", to: "key")
        #expect(unsafe chmod(path, 0o600) == 0)
        let device = "{name: a, address: 'C0:FF:EE:00:00:01', profiles: [garden-beacon], bind_key_file: key}"
        let file = ConfigurationFile(try folder.write("devices: [\(device)]\n", to: "gattherd.yaml"))
        return try file.parsed().mismatches(with: registry)
    }

    @Test func `a key of 24 digits is an error for a device with a native profile`() throws {
        #expect(registry.profiles.map(\.name) == ["garden-beacon"], "\(registry.refusals)")
        let findings = try findings("0123456789abcdef01234567")
        #expect(findings.map(\.severity) == [.error])
        let description = try #require(findings.first).problem.description
        #expect(description.contains("has 24 hexadecimal digits; the native profile 'garden-beacon' takes only"))
        #expect(!description.contains("0123"))
    }

    @Test func `a key of 32 digits is good for a native profile`() throws {
        #expect(try findings("0123456789abcdef0123456789abcdef").isEmpty)
    }
}
