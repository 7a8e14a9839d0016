import FoundationEssentials
import GattherdConfig
import GattherdHTTP
import GattherdProfiles
import TestKit
import Testing

@testable import GattherdGateway

/// Devices with a key that people add at the dashboard.
@Suite(.timeLimit(.minutes(1))) struct DeviceKeyTests {
    private static let key = "0123456789abcdef 0123456789ABCDEF"

    private let folder: TemporaryFolder
    private let file: ConfigurationFile
    private let changes = PendingChanges()
    private let devices: DeviceEditor

    init() throws {
        folder = try TemporaryFolder()
        file = ConfigurationFile(try folder.write("gateway: lab\n", to: "gattherd.yaml"))
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        let profile = Checkout.root.appending(path: "Plugins/Standard/victron.yaml").path
        let running = RunningConfiguration(try file.parsed(), try ProfileRegistry.load(paths: [profile]), [])
        devices = DeviceEditor(ConfigurationEditor(file, running, changes), running)
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: folder.file(name), encoding: .utf8)
    }

    private func isThere(_ name: String) -> Bool { FileManager.default.fileExists(atPath: folder.file(name)) }

    /// Runs `body` while all reloads succeed.
    private func reloading<Value>(_ body: () async throws -> Value) async throws -> Value {
        let task = Task { [changes] in
            for await _ in changes.wakes {
                for waiter in changes.dequeue().reloadWaiters {
                    waiter.yield(.done(waiting: []))
                    waiter.finish()
                }
            }
        }
        defer { task.cancel() }
        return try await body()
    }

    /// Adds the device `shunt`, or shows its text.
    private func add(profile: String = "victron", hasKey: Bool = true, isPreview: Bool = false) async throws {
        let key = hasKey ? #""key":"\#(Self.key)","# : ""
        let device = #""address":"A4:C1:38:11:22:33","name":"shunt","profiles":["\#(profile)"]"#
        let json = #"{\#(key)\#(device),"preview":\#(isPreview)}"#
        let body = RequestBody(Array(json.utf8))
        _ = try await devices.add(try NewDevice(try #require(body)))
    }

    /// Returns the error of an addition.
    private func refusal(
        profile: String = "victron",
        hasKey: Bool = true,
        isPreview: Bool
    ) async throws -> BackendError {
        let refusal = try await reloading {
            await #expect(throws: BackendError.self) {
                try await add(profile: profile, hasKey: hasKey, isPreview: isPreview)
            }
        }
        return try #require(refusal)
    }

    @Test func `a key is written to a file that only the daemon reads`() async throws {
        try await reloading { try await add() }
        let path = folder.file("gattherd.d/shunt.key")
        #expect(try text("gattherd.d/shunt.key") == "0123456789abcdef0123456789ABCDEF\n")
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode.map { "\($0)" } == "\(0o600)")
        #expect(try text("gattherd.d/shunt.yaml").contains("    bind_key_file: 'gattherd.d/shunt.key'\n"))
        #expect(try file.parsed().devices.last?.bindKeyFile?.value == path)
    }

    @Test func `the key of a deleted device is replaced, but not by a preview`() async throws {
        try folder.write("the key of a deleted device\n", to: "gattherd.d/shunt.key")
        try await reloading {
            try await add(isPreview: true)
            #expect(try text("gattherd.d/shunt.key") == "the key of a deleted device\n")
            try await add()
        }
        #expect(try text("gattherd.d/shunt.key") == "0123456789abcdef0123456789ABCDEF\n")
    }

    @Test(arguments: [true, false])
    func `a key that another device uses is not replaced`(isPreview: Bool) async throws {
        let other = "{name: other, address: 'A4:C1:38:11:22:44', bind_key_file: ./gattherd.d/shunt.key}"
        try folder.write("devices: [\(other)]\n", to: "gattherd.d/other.yaml")
        try folder.write("the key of another device\n", to: "gattherd.d/shunt.key")
        let error = try await refusal(isPreview: isPreview)
        #expect(error.kind == .conflict)
        #expect(error.detail.contains("shunt.key already exists; choose another name"))
        #expect(try text("gattherd.d/shunt.key") == "the key of another device\n")
        #expect(!isThere("gattherd.d/shunt.yaml"))
    }

    @Test(arguments: [
        "mqtt: {url: 'mqtts://localhost', tls: {key: gattherd.d/shunt.key, certificate: shunt.pem}}",
        "http: {listen: '127.0.0.1:8780', token_file: gattherd.d/shunt.key}",
    ])
    func `a file that another section names is not replaced`(section: String) async throws {
        try folder.write("gateway: lab\n\(section)\n", to: "gattherd.yaml")
        try folder.write("a secret\n", to: "gattherd.d/shunt.key")
        let error = try await refusal(isPreview: false)
        #expect(error.detail.contains("shunt.key already exists; choose another name"))
        #expect(try text("gattherd.d/shunt.key") == "a secret\n")
    }

    @Test(arguments: [true, false])
    func `a device with a key and an unknown profile is refused before anything is written`(
        isPreview: Bool
    ) async throws {
        let error = try await refusal(profile: "nonesuch", isPreview: isPreview)
        #expect(error.kind == .refused)
        #expect(error.detail.contains("no profile is named 'nonesuch'"))
        #expect(!isThere("gattherd.d/shunt.key") && !isThere("gattherd.d/shunt.yaml"))
    }

    @Test(arguments: [true, false])
    func `a preview of a device whose file exists is refused`(hasKey: Bool) async throws {
        try folder.write("# mine\n", to: "gattherd.d/shunt.yaml")
        let error = try await refusal(hasKey: hasKey, isPreview: true)
        #expect(error.kind == .conflict)
        #expect(error.detail.contains("shunt.yaml already exists; choose another name"))
    }
}
