import GattherdGATT
import GattherdModel
import GattherdProfiles
import Glibc
import TestKit
import Testing

struct ProfileRegistryTests {
    @Test func `What is refused does not keep the rest from working`() async throws {
        let folder = try TemporaryFolder()
        _ = try await CPlugin.build("b.so", in: folder)
        _ = try await CPlugin.build("a.so", in: folder, "MAJOR 7")
        try folder.write("not a profile", to: "README.md")
        try folder.write("not a profile", to: ".hidden.so")

        let registry = try ProfileRegistry.load(paths: [folder.path])

        #expect(registry.profiles.map(\.name) == ["thermometer"])
        #expect(registry.refusals.map(\.path) == [folder.file("a.so")])
    }

    @Test func `Of two profiles with one name the first is used`() async throws {
        let folder = try TemporaryFolder()
        _ = try await CPlugin.build("a.so", in: folder)
        _ = try await CPlugin.build("b.so", in: folder)

        let registry = try ProfileRegistry.load(paths: [folder.path])

        #expect(registry.profiles.map(\.origin) == [folder.file("a.so")])
        #expect(registry.refusals.map(\.reason) == ["the name 'thermometer' is taken by \(folder.file("a.so"))"])
    }

    @Test func `A file that two paths lead to is loaded once`() async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        let registry = try ProfileRegistry.load(paths: [path, folder.path, folder.path + "/."])
        #expect(registry.profiles.count == 1 && registry.refusals.isEmpty)
    }

    @Test func `A library that is loaded again is the same`() async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        for _ in 0..<3 { #expect(try ProfileRegistry.load(paths: [path]).profiles.count == 1) }
    }

    @Test func `A path that is not there is an error of the configuration`() throws {
        let error = #expect(throws: ProfilePathError.self) { try ProfileRegistry.load(paths: ["/nowhere/profiles"]) }
        #expect(
            error?.description == "profile path /nowhere/profiles: there is no such file or folder. "
                + "Correct 'profiles: paths:', or create the folder"
        )
    }

    @Test func `A library that everybody may write to is not even opened`() async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        unsafe chmod(path, 0o777)
        let registry = try ProfileRegistry.load(paths: [folder.path])
        #expect(registry.profiles.isEmpty)
        #expect(
            registry.refusals.map(\.description) == ["\(path): everybody may write to it. Run: chmod o-w '\(path)'"]
        )
    }

    @Test(arguments: [true, false])
    func `Nothing of a folder that everybody may write to is used`(isFolderNamed: Bool) async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        unsafe chmod(folder.path, 0o777)
        let registry = try ProfileRegistry.load(paths: [isFolderNamed ? folder.path : path])
        #expect(registry.profiles.isEmpty)
        #expect(registry.refusals.map(\.path) == [folder.path])
    }

    @Test(arguments: [true, false])
    func `Where a group of others may write, nothing is used`(isFolder: Bool) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text(title: "battery"), to: "battery.yaml")
        let concerned = isFolder ? folder.path : path
        let mode: mode_t = isFolder ? 0o775 : 0o664
        unsafe chmod(concerned, mode)
        #expect(try ProfileRegistry.load(paths: [folder.path]).refusals.isEmpty, "our own group may")
        unsafe chown(concerned, uid_t.max, 54_321)
        guard geteuid() == 0 else { return }
        unsafe chmod(concerned, mode)
        let registry = try ProfileRegistry.load(paths: [folder.path])
        #expect(registry.profiles.isEmpty)
        #expect(registry.refusals.map(\.path) == [concerned])
        #expect(registry.refusals.first?.description.contains("Run: chmod g-w '\(concerned)'") == true)
    }

    @Test func `A link is judged by what it leads to`() async throws {
        let (here, there) = (try TemporaryFolder(), try TemporaryFolder())
        let path = try await CPlugin.build(in: there)
        unsafe chmod(there.path, 0o777)
        unsafe symlink(path, here.file("link.so"))
        let registry = try ProfileRegistry.load(paths: [here.path])
        #expect(registry.profiles.isEmpty)
        #expect(registry.refusals.map(\.path) == [there.path])
    }

    @Test(arguments: [false, true])
    func `A refusal tells whom it concerns, by whatever name`(isOfFolder: Bool) throws {
        let (folder, elsewhere) = (try TemporaryFolder(), try TemporaryFolder())
        let file = try folder.write(text(title: "battery"), to: "battery.yaml")
        unsafe symlink(folder.path, elsewhere.file("folder"))
        unsafe symlink(file, elsewhere.file("link.yaml"))
        let upward = String(repeating: "../", count: 20)
        let paths = [
            folder.path, file, elsewhere.file("folder"), elsewhere.file("link.yaml"), upward + folder.path.dropFirst(),
        ]
        let inUse = try paths.map { try #require(ProfileRegistry.load(paths: [$0]).profiles.first?.origin) }
        unsafe chmod(isOfFolder ? folder.path : file, 0o777)
        for path in paths {
            let refusal = try #require(ProfileRegistry.load(paths: [path]).refusals.first)
            #expect(inUse.allSatisfy(refusal.concerns))
            #expect(!refusal.concerns(elsewhere.file("other.yaml")) && !refusal.concerns("battery.yaml"))
        }
    }

    @Test func `A refused folder of links concerns what they are called in it`() throws {
        let (folder, elsewhere) = (try TemporaryFolder(), try TemporaryFolder())
        let file = try folder.write(text(title: "battery"), to: "battery.yaml")
        unsafe symlink(file, elsewhere.file("link.yaml"))
        let origin = try #require(ProfileRegistry.load(paths: [elsewhere.path]).profiles.first?.origin)
        unsafe chmod(elsewhere.path, 0o777)
        let refusal = try #require(ProfileRegistry.load(paths: [elsewhere.path]).refusals.first)
        #expect(refusal.concerns(origin) && !refusal.concerns(file))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func `A library that belongs to somebody else is refused`() async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        unsafe chown(path, 12_345, 0)
        let refusals = try ProfileRegistry.load(paths: [folder.path]).refusals
        #expect(refusals.map(\.remedy) == ["Run: chown root '\(path)'"])
    }

    @Test func `A link that leads nowhere and a folder named .so are refused`() throws {
        let folder = try TemporaryFolder()
        unsafe symlink("/nowhere/at/all", folder.file("a.so"))
        unsafe mkdir(folder.file("b.so"), 0o700)
        let refusals = try ProfileRegistry.load(paths: [folder.path]).refusals
        #expect(
            refusals.map(\.reason) == ["it cannot be read: there is no such file or folder", "it is not a file"]
        )
    }

    @Test func `A file with another ending is refused when it is named itself`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("x", to: "profile.txt")
        let refusals = try ProfileRegistry.load(paths: [path]).refusals
        #expect(refusals.map(\.reason) == ["its name ends neither in .so nor in .yaml"])
    }

    @Test func `Profiles are found by their services`() async throws {
        let folder = try TemporaryFolder()
        let registry = try ProfileRegistry.load(paths: [try await CPlugin.build(in: folder)])
        #expect(registry.matching([0x180F, 0x181A]).map(\.name) == ["thermometer"])
        #expect(registry.matching([0x180F]).isEmpty)
        #expect(registry["thermometer"] != nil && registry["barometer"] == nil)
    }

    private func text(title: String, _ line: String = "opt_in: false", services: String = "[180f]") -> String {
        """
        contract: 1
        profile: battery
        title: \(title)
        \(line)
        services: \(services)
        characteristics: [{uuid: 2a19, stream: battery, read: true, fields: [{metric: level, type: u8}]}]
        """
    }

    @Test(arguments: [("a.yaml", "b.yaml"), ("b.yaml", "a.yaml")])
    func `A stand-in gives way to another profile of its name, whichever comes first`(one: String, other: String) throws
    {
        let folder = try TemporaryFolder()
        try folder.write(text(title: "stand-in", "stand_in: true"), to: one)
        #expect(try ProfileRegistry.load(paths: [folder.path]).profiles.map(\.title) == ["stand-in"])
        try folder.write(text(title: "real"), to: other)
        let registry = try ProfileRegistry.load(paths: [folder.path])
        #expect(registry.profiles.map(\.title) == ["real"])
        #expect(registry.refusals.isEmpty)
    }

    @Test func `A profile can be for devices that name it only, or for any service`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text(title: "secret", "opt_in: true"), to: "a.yaml")
        let registry = try ProfileRegistry.load(paths: [path])
        #expect(registry.matching([0x180F]).isEmpty && registry.profiles[0].isOptIn)
        try folder.write(text(title: "any", services: "any"), to: "a.yaml")
        #expect(try ProfileRegistry.load(paths: [path]).profiles.map(\.services) == [[]])
    }
}
