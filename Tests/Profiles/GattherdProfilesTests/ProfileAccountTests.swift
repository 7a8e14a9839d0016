import GattherdModel
import GattherdProfiles
import Glibc
import TestKit
import Testing

@Suite struct ProfileAccountTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = try folder.write(
            "contract: 1\nprofile: probe\nservices: [fff0]\ncontrols: [{name: a, uuid: fff1, type: u8}]",
            to: "probe.yaml"
        )
    }

    @Test(.enabled(if: geteuid() == 0))
    func `a file is trusted by the account that owns it, not by the one that checks it`() throws {
        let service = ProfileAccount(user: 64_999, group: 64_998)
        for place in [folder.path, path] {
            #expect(unsafe chown(place, 64_999, 64_998) == 0)
            #expect(unsafe chmod(place, 0o775) == 0)
        }
        let accepted = try ProfileRegistry.load(paths: [folder.path], for: service)
        #expect(accepted.profiles.map(\.name) == ["probe"])
        let refused = try ProfileRegistry.load(paths: [folder.path], for: .current)
        #expect(refused.profiles.isEmpty)
        #expect(refused.refusals.count == 1)
    }

    @Test(.enabled(if: geteuid() == 0))
    func `root does not run code that the user of the service can change`() throws {
        let service = ProfileAccount(user: 64_999, group: 64_998)
        let library = try folder.write("no code", to: "probe.so")
        #expect(unsafe chmod(folder.path, 0o755) == 0)
        let ofRoot = try ProfileRegistry.load(paths: [library], for: service)
        #expect(ofRoot.refusals.count == 1 && ofRoot.refusals.first?.reason.contains("does not run") == false)
        for place in [folder.path, library] {
            #expect(unsafe chown(place, 64_999, 64_998) == 0)
            let refused = try ProfileRegistry.load(paths: [library], for: service)
            #expect(refused.refusals.first?.reason.contains("root does not run code that user 64999") == true)
        }
    }

    @Test func `an unreadable folder is a refusal and keeps the other profiles`() {
        let registry = ProfileRegistry.load(readable: ["/nowhere", folder.path], for: .current)
        #expect(registry.profiles.map(\.name) == ["probe"])
        #expect(registry.refusals.map(\.path) == ["/nowhere"])
    }
}
