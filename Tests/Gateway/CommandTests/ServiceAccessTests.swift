import Foundation
import GattherdConfig
import Glibc
import TestKit
import Testing

@testable import GattherdGateway
@testable import gattherd

/// Tests the service's access to files, from a process with more rights.
@Suite struct ServiceAccessTests {
    /// An account that does not own the files.
    private static let stranger = ServiceAccount(user: "gattherd", id: 64_999, groups: [64_998])

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        #expect(unsafe chmod(folder.path, 0o755) == 0)
    }

    private func file(_ name: String, _ mode: mode_t, in mode2: mode_t = 0o755) throws -> String {
        let place = folder.file("in")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        let path = place + "/" + name
        try Data("x\n".utf8).write(to: URL(filePath: path))
        #expect(unsafe chmod(path, mode) == 0)
        #expect(unsafe chmod(place, mode2) == 0)
        return path
    }

    // MARK: - Rights

    @Test(
        arguments: [(mode_t(0o600), false), (0o640, false), (0o604, true), (0o644, true), (0o000, false)]
    )
    func `access follows the permissions of owner, group and others`(mode: mode_t, isReadable: Bool) throws {
        let path = try file("ca.pem", mode)
        let obstacle = Self.stranger.obstacle(to: .read, path)
        #expect(obstacle == (isReadable ? nil : .init(path: path, isFolder: false)))
    }

    @Test func `the owner has the owner's rights, and a member of the group the group's`() throws {
        let (path, mine) = (try file("key", 0o640), getgid())
        #expect(ServiceAccount(user: "me", id: getuid(), groups: []).obstacle(to: .readAndWrite, path) == nil)
        #expect(ServiceAccount(user: "me", id: 64_999, groups: [mine]).obstacle(to: .read, path) == nil)
        #expect(ServiceAccount(user: "me", id: 64_999, groups: [mine]).obstacle(to: .readAndWrite, path) != nil)
    }

    @Test func `the report names the folder of a path that may not be entered`() throws {
        let path = try file("ca.pem", 0o644, in: 0o700)
        let place = folder.file("in")
        #expect(Self.stranger.obstacle(to: .read, path) == .init(path: place, isFolder: true))
        let link = folder.file("link.pem")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        #expect(Self.stranger.obstacle(to: .read, link) == .init(path: place, isFolder: true))
    }

    @Test func `a missing file is not an error`() {
        #expect(Self.stranger.obstacle(to: .read, folder.file("none")) == nil)
    }

    // MARK: - Findings

    private func findings(_ text: String, _ unit: String...) throws -> [String] {
        let path = try folder.write(text, to: "gattherd.yaml")
        #expect(unsafe chmod(path, 0o644) == 0)
        let file = ConfigurationFile(path)
        let access = ServiceAccess(file, unit: ServiceUnit(unit), account: Self.stranger)
        return access.findings(file.parsedLeniently().configuration).map { "\($0.problem)" }
    }

    @Test(
        arguments: [
            "mqtt: {url: \"mqtts://b\", tls: {ca: FILE}}",
            "mqtt: {url: \"mqtts://b\", tls: {certificate: x, key: FILE}}",
            "mqtt: {url: \"mqtt://b\", username: u, password_file: FILE}",
            "http: {listen: \"127.0.0.1:1\", token_file: FILE}",
            "influx: {url: \"http://localhost\", bucket: b, token_file: FILE}",
            "influx: {url: \"https://localhost\", bucket: b, tls: {certificate: x, key: FILE}}",
            "sparkplug: {url: \"mqtt://b\", username: u, password_file: FILE}",
            "sparkplug: {url: \"mqtts://b\", tls: {ca: FILE}}",
            "devices: [{name: a, address: \"C0:FF:EE:00:00:01\", pin_file: FILE}]",
            "devices: [{name: a, address: \"C0:FF:EE:00:00:01\", bind_key_file: FILE}]", "profiles: {paths: [FILE]}",
        ]
    )
    func `each file that the configuration names is checked`(text: String) throws {
        let path = try file("secret", 0o600)
        let history = "history: {path: /var/lib/gattherd/gattherd.db}\n"
        let words = try findings(history + text.replacing("FILE", with: path), "StateDirectory=gattherd")
        #expect(
            words == [
                "user gattherd, as which the service runs, may not read '\(path)'; "
                    + "run: chgrp gattherd '\(path)' && chmod g+r '\(path)'"
            ]
        )
        #expect(unsafe chmod(path, 0o644) == 0)
        #expect(try findings(history + text.replacing("FILE", with: path), "StateDirectory=gattherd") == [])
    }

    @Test func `a file that the unit hides is reported with the setting`() throws {
        let words = try findings(
            "history: {path: /srv/g/g.db}\nhttp: {listen: \"127.0.0.1:1\", token_file: /root/token}",
            "User=gattherd\nProtectHome=yes\nProtectSystem=strict\nStateDirectory=gattherd"
        )
        #expect(words.count == 2)
        #expect(words.first?.hasPrefix("the service does not see '/root/token' (ProtectHome= in its unit)") == true)
        #expect(words.last?.contains("add: [Service] ReadWritePaths=/srv/g") == true)
    }

    @Test func `the service must be able to write the files of outputs`() throws {
        let unit = "User=gattherd\nProtectSystem=strict\n" + Self.state
        let allowed = Self.history + "profiles: {paths: []}\nlines: {path: /var/lib/gattherd/a}"
        #expect(try findings(allowed, unit) == [])
        let words = try findings(Self.history + "profiles: {paths: []}\nlines: {path: /srv/a}", unit)
        #expect(words.map { $0.contains("add: [Service] ReadWritePaths=/srv") } == [true])
    }

    @Test func `a named pipe of an output needs permissions for itself only`() throws {
        let pipe = folder.file("pipe")
        #expect(unsafe mkfifo(pipe, 0o600) == 0 && chmod(pipe, 0o622) == 0)
        let text = Self.history + "profiles: {paths: []}\nlines: {path: '\(pipe)'}"
        #expect(try findings(text, Self.state) == [])
        #expect(unsafe chmod(pipe, 0o640) == 0)
        #expect(try findings(text, Self.state).map { $0.hasSuffix("run: chown gattherd '\(pipe)'") } == [true])
    }

    private static let state = "StateDirectory=gattherd"
    private static let history = "history: {path: /var/lib/gattherd/gattherd.db}\n"

    @Test func `a folder of profiles must be listed, and each profile in it read`() throws {
        let path = try file("a.yaml", 0o600)
        let (place, text) = (folder.file("in"), Self.history + "profiles: {paths: [\(folder.file("in"))]}")
        #expect(try findings(text, Self.state).first?.contains("may not read '\(path)'; run: chgrp") == true)
        #expect(unsafe chmod(path, 0o644) == 0)
        #expect(try findings(text, Self.state) == [])
        #expect(unsafe chmod(place, 0o711) == 0)
        let words = try findings(text, Self.state)
        #expect(words.count == 1)
        #expect(words.first?.hasSuffix("run: chmod o+rx '\(place)'") == true)
    }

    @Test func `a folder of configuration files must be listed`() throws {
        let place = folder.file("gattherd.d")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        try Data("gateway: lab\n".utf8).write(to: URL(filePath: place + "/a.yaml"))
        #expect(unsafe chmod(place, 0o711) == 0)
        let words = try findings(Self.history + "profiles: {paths: []}", Self.state)
        #expect(words.map { $0.hasSuffix("run: chmod o+rx '\(place)'") } == [true])
    }

    @Test func `a hidden history moves to the state folder`() throws {
        let unit = "User=gattherd\nPrivateTmp=yes\n" + Self.state
        let words = try findings("history: {path: /tmp/g/g.db}\nprofiles: {paths: []}", unit)
        #expect(words.last?.hasSuffix("move it, for example to /var/lib/gattherd") == true)
    }

    // MARK: - Units

    @Test func `a drop-in overrides the unit, and an empty value clears a list`() throws {
        let units = folder.file("units")
        try FileManager.default.createDirectory(
            atPath: units + "/gattherd.service.d",
            withIntermediateDirectories: true
        )
        let main = """
            [Service]
            # User=nobody
            User=gattherd
            SupplementaryGroups=bluetooth
            ExecStart=/usr/bin/gattherd run \\
              --config /srv/mine.yaml
            PrivateTmp=yes
            """
        for (name, text) in [
            ("gattherd.service", main),
            ("gattherd.service.d/b.conf", "[Service]\nUser=pi\nSupplementaryGroups=dialout"),
            ("gattherd.service.d/a.conf", "[Service]\nUser=other\nSupplementaryGroups=\nPrivateTmp=no"),
        ] {
            try Data(text.utf8).write(to: URL(filePath: units + "/" + name))
        }
        let unit = try #require(ServiceUnit.installed(in: [folder.file("none"), units]))
        #expect((unit.user, unit.configuration) == ("pi", "/srv/mine.yaml"))
        #expect(unit.supplementaryGroups == ["dialout"])
        #expect(unit.hiddenFolders.isEmpty)
        #expect(ServiceUnit.installed(in: [folder.file("none")]) == nil)
    }

    @Test func `only the service's own configuration is checked with its rights`() throws {
        let (own, other) = (folder.file("own.yaml"), folder.file("other.yaml"))
        let unit = ServiceUnit(["User=nobody\nExecStart=/usr/bin/gattherd run --config \(own)"])
        #expect(ServiceAccess(ConfigurationFile(own), unit: unit) != nil)
        #expect(ServiceAccess(ConfigurationFile(other), unit: unit) == nil)
        #expect(ServiceAccess(ConfigurationFile(own), unit: nil) == nil)
        let root = ServiceUnit(["ExecStart=/usr/bin/gattherd run --config \(own)"])
        #expect(ServiceAccess(ConfigurationFile(own), unit: root) == nil)
    }

    @Test func `the packaged systemd unit is parsed`() throws {
        let unit = ServiceUnit([
            try String(contentsOf: Checkout.root.appending(path: "config/gattherd.service"), encoding: .utf8)
        ])
        #expect((unit.user, unit.group, unit.configuration) == ("gattherd", "gattherd", "/etc/gattherd/gattherd.yaml"))
        #expect(unit.writableFolders == ["/var/lib/gattherd", "/etc/gattherd/gattherd.d"])
        #expect(unit.hiddenFolders["/root"] == "ProtectHome=")
        #expect(unit.hiddenFolders["/tmp"] == "PrivateTmp=")
    }

    @Test func `the packaged unit lets a start read a large write-ahead log`() throws {
        let text = try String(contentsOf: Checkout.root.appending(path: "config/gattherd.service"), encoding: .utf8)
        #expect(text.split(separator: "\n").contains("TimeoutStartSec=10min"))
    }
}
