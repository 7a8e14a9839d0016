import GattherdGATT
import GattherdModel
import GattherdProfiles
import Glibc
import TestKit
import Testing

struct ProfileRegistryTests {
    @Test func `a refused profile does not affect the others`() async throws {
        let folder = try TemporaryFolder()
        _ = try await CPlugin.build("b.so", in: folder)
        _ = try await CPlugin.build("a.so", in: folder, "MAJOR 7")
        try folder.write("not a profile", to: "README.md")
        try folder.write("not a profile", to: ".hidden.so")

        let registry = try ProfileRegistry.load(paths: [folder.path])

        #expect(registry.profiles.map(\.name) == ["thermometer"])
        #expect(registry.refusals.map(\.path) == [folder.file("a.so")])
    }

    @Test func `the first of two profiles with the same name is used`() async throws {
        let folder = try TemporaryFolder()
        _ = try await CPlugin.build("a.so", in: folder)
        _ = try await CPlugin.build("b.so", in: folder)

        let registry = try ProfileRegistry.load(paths: [folder.path])

        #expect(registry.profiles.map(\.origin) == [folder.file("a.so")])
        #expect(registry.refusals.map(\.reason) == ["the name 'thermometer' is taken by \(folder.file("a.so"))"])
    }

    @Test func `a file with two paths is loaded once`() async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        let registry = try ProfileRegistry.load(paths: [path, folder.path, folder.path + "/."])
        #expect(registry.profiles.count == 1 && registry.refusals.isEmpty)
    }

    @Test func `loading a library twice gives the same profile`() async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        for _ in 0..<3 { #expect(try ProfileRegistry.load(paths: [path]).profiles.count == 1) }
    }

    @Test func `a missing path is a configuration error`() throws {
        let error = #expect(throws: ProfilePathError.self) { try ProfileRegistry.load(paths: ["/nowhere/profiles"]) }
        #expect(
            error?.description == "profile path /nowhere/profiles: there is no such file or folder. "
                + "Correct 'profiles: paths:', or create the folder"
        )
    }

    @Test func `a world-writable library is not opened`() async throws {
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
    func `a world-writable folder is refused`(isFolderNamed: Bool) async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        unsafe chmod(folder.path, 0o777)
        let registry = try ProfileRegistry.load(paths: [isFolderNamed ? folder.path : path])
        #expect(registry.profiles.isEmpty)
        #expect(registry.refusals.map(\.path) == [folder.path])
    }

    @Test func `a profile in a shared temporary folder is refused with the advice to move it`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text(title: "battery"), to: "battery.yaml")
        unsafe chmod(folder.path, 0o1777)
        let registry = try ProfileRegistry.load(paths: [path])
        let words = "everybody may write to it. Move the profile to a folder of your own"
        #expect(registry.refusals.map(\.description) == ["\(folder.path): \(words)"])
    }

    @Test(arguments: [true, false])
    func `files that a foreign group may write are refused`(isFolder: Bool) throws {
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

    @Test func `the target of a link decides about its trust`() async throws {
        let (here, there) = (try TemporaryFolder(), try TemporaryFolder())
        let path = try await CPlugin.build(in: there)
        unsafe chmod(there.path, 0o777)
        unsafe symlink(path, here.file("link.so"))
        let registry = try ProfileRegistry.load(paths: [here.path])
        #expect(registry.profiles.isEmpty)
        #expect(registry.refusals.map(\.path) == [there.path])
    }

    @Test(arguments: [false, true])
    func `a refusal matches a profile by any of its paths`(isOfFolder: Bool) throws {
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

    @Test func `a refused folder concerns the profiles that were loaded by links in it`() throws {
        let (folder, elsewhere) = (try TemporaryFolder(), try TemporaryFolder())
        let file = try folder.write(text(title: "battery"), to: "battery.yaml")
        unsafe symlink(file, elsewhere.file("link.yaml"))
        let origin = try #require(ProfileRegistry.load(paths: [elsewhere.path]).profiles.first?.origin)
        unsafe chmod(elsewhere.path, 0o777)
        let refusal = try #require(ProfileRegistry.load(paths: [elsewhere.path]).refusals.first)
        #expect(refusal.concerns(origin) && !refusal.concerns(file))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func `a library of another user is refused`() async throws {
        let folder = try TemporaryFolder()
        let path = try await CPlugin.build(in: folder)
        unsafe chown(path, 12_345, 0)
        let refusals = try ProfileRegistry.load(paths: [folder.path]).refusals
        #expect(refusals.map(\.remedy) == ["Run: chown root '\(path)'"])
    }

    @Test func `a dangling link and a folder named .so are refused`() throws {
        let folder = try TemporaryFolder()
        unsafe symlink("/nowhere/at/all", folder.file("a.so"))
        unsafe mkdir(folder.file("b.so"), 0o700)
        let refusals = try ProfileRegistry.load(paths: [folder.path]).refusals
        #expect(
            refusals.map(\.reason) == ["it cannot be read: there is no such file or folder", "it is not a file"]
        )
    }

    @Test func `a named file with an unknown extension is refused`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("x", to: "profile.txt")
        let refusals = try ProfileRegistry.load(paths: [path]).refusals
        #expect(refusals.map(\.reason) == ["its name ends neither in .so nor in .yaml"])
    }

    @Test func `profiles are found by their services`() async throws {
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
    func `another profile of the same name replaces a stand-in, in any order`(one: String, other: String) throws {
        let folder = try TemporaryFolder()
        try folder.write(text(title: "stand-in", "stand_in: true"), to: one)
        #expect(try ProfileRegistry.load(paths: [folder.path]).profiles.map(\.title) == ["stand-in"])
        try folder.write(text(title: "real"), to: other)
        let registry = try ProfileRegistry.load(paths: [folder.path])
        #expect(registry.profiles.map(\.title) == ["real"])
        #expect(registry.refusals.isEmpty)
    }

    @Test(arguments: [("a.yaml", "b.so"), ("b.yaml", "a.so")])
    func `a profile that replaces a stand-in recognises its models`(standIn: String, library: String) async throws {
        let folder = try TemporaryFolder()
        _ = try await CPlugin.build(library, in: folder)
        let lines = "stand_in: true\nidentify: [{brand: Acme, model: T1, name: Acme*}]"
        let text = text(title: "stand-in", lines).replacing("profile: battery", with: "profile: thermometer")
        try folder.write(text, to: standIn)
        let registry = try ProfileRegistry.load(paths: [folder.path])
        #expect(registry.profiles.map(\.origin) == [folder.file(library)])
        let identity = registry.identify(AdvertisedTraits(name: "Acme 7"))
        #expect(identity?.profile == "thermometer")
        #expect(identity?.model?.description == "Acme T1")
    }

    @Test func `a profile with its own models does not inherit those of the stand-in`() throws {
        let folder = try TemporaryFolder()
        try folder.write(text(title: "x", "stand_in: true\nidentify: [{brand: A, model: B, name: x}]"), to: "a.yaml")
        try folder.write(text(title: "y", "identify: [{brand: C, model: D, name: y}]"), to: "b.yaml")
        let registry = try ProfileRegistry.load(paths: [folder.path])
        #expect(registry.profiles.flatMap(\.models).map(\.brand) == ["C"])
    }

    @Test func `profiles without their tests decode alike`() throws {
        let folder = try TemporaryFolder()
        let tests = "tests: [{hex: '63', expect: {level: 99}}]}]"
        let text = text(title: "battery").replacing("}]}]", with: "}], \(tests)")
        let path = try folder.write(text, to: "a.yaml")
        for (keepsTests, count) in [(true, 1), (false, 0)] {
            let loaded = try ProfileRegistry.load(paths: [path], for: .current, keepsTests: keepsTests).profiles
            let profile = try #require(loaded.first)
            #expect(ProfileTools.runVectors(of: profile).count == count)
            #expect(try ProfileTools.decode([[99]], characteristic: 0, of: profile).map(\.value) == [.integer(99)])
        }
    }

    @Test func `a profile can be opt-in or match any service`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(text(title: "secret", "opt_in: true"), to: "a.yaml")
        let registry = try ProfileRegistry.load(paths: [path])
        #expect(registry.matching([0x180F]).isEmpty && registry.profiles[0].isOptIn)
        try folder.write(text(title: "any", services: "any"), to: "a.yaml")
        #expect(try ProfileRegistry.load(paths: [path]).profiles.map(\.services) == [[]])
    }
}
