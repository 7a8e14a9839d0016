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
        let native = try await SharedLibrary.build(source, to: "garden.so", in: folder)
        let declarative = try folder.write(Self.declarative, to: "shed.yaml")
        registry = try ProfileRegistry.load(paths: [native, declarative])
    }

    private static let declarative = """
        contract: 1
        profile: shed
        advertisement:
          - service_data: fe95
            stream: shed
            fields:
              - {decrypt: {cipher: aes-ecb}}
              - {metric: x, type: u8}
        """

    private func findings(_ key: String, profiles: String = "garden-beacon") throws -> [ConfigError] {
        let path = try folder.write(key + "\n", to: "key")
        #expect(unsafe chmod(path, 0o600) == 0)
        let device = "{name: a, address: 'C0:FF:EE:00:00:01', profiles: [\(profiles)], bind_key_file: key}"
        let file = ConfigurationFile(try folder.write("devices: [\(device)]\n", to: "gattherd.yaml"))
        return try file.parsed().mismatches(with: registry)
    }

    @Test func `a key of 24 digits is an error for a device with a native profile`() throws {
        #expect(Set(registry.profiles.map(\.name)) == ["garden-beacon", "shed"], "\(registry.refusals)")
        let findings = try findings("0123456789abcdef01234567")
        #expect(findings.map(\.severity) == [.error])
        let description = try #require(findings.first).problem.description
        #expect(description.contains("has 24 hexadecimal digits; the native profile 'garden-beacon' takes only"))
        #expect(!description.contains("0123"))
    }

    @Test(arguments: ["garden-beacon, shed", "shed, garden-beacon", "shed"])
    func `a key of 24 digits is good for a device with a declarative profile`(profiles: String) throws {
        #expect(try findings("0123456789abcdef01234567", profiles: profiles).isEmpty)
    }

    @Test func `a key of 32 digits is good for a native profile`() throws {
        #expect(try findings("0123456789abcdef0123456789abcdef").isEmpty)
    }
}
