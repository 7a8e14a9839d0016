import FoundationEssentials
import GattherdConfig
import GattherdLog
import GattherdSync
import TestKit
import Testing

@testable import GattherdGateway

/// Files that are added beside the configuration.
@Suite struct ConfigurationAdditionTests {
    private let folder: TemporaryFolder
    private let file: ConfigurationFile

    init() throws {
        folder = try TemporaryFolder()
        file = ConfigurationFile(try folder.write("devices: [{name: a, address: C0:FF:EE:00:00:01}]\n", to: "g.yaml"))
    }

    private func source(_ text: String = "devices: [{name: b, address: C0:FF:EE:00:00:02}]\n") -> ConfigSource {
        ConfigSource(name: file.fragment(named: "b"), text: text)
    }

    /// The permissions, in decimal digits.
    private func mode(_ path: String) throws -> String {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions].map { "\($0)" } ?? ""
    }

    @Test func `a new file is read with the others, and has the permissions of the main file`() throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file.path)
        #expect(try file.parsed(with: [source()]).devices.map(\.name.value) == ["a", "b"])
        #expect(try file.parsed().devices.map(\.name.value) == ["a"])
        try file.add(source())
        #expect(try file.parsed().devices.map(\.name.value) == ["a", "b"])
        #expect(try mode(file.fragment(named: "b")) == "\(0o640)")
        #expect(try mode(file.fragmentFolder) == "\(0o750)")
    }

    @Test func `a file can be added where this process can write, also if the folder is missing`() throws {
        #expect(file.obstacleToAdding == nil)
        try file.add(source())
        #expect(file.obstacleToAdding == nil)
        let obstacle = ConfigurationFile(folder.file("none/g.yaml")).obstacleToAdding
        #expect(obstacle?.contains("cannot write in \(folder.path)/none/") == true)
    }

    @Test func `an emptied file stays valid`() throws {
        try file.add(source())
        try file.replace(source(""))
        #expect(try file.parsed().devices.map(\.name.value) == ["a"])
        #expect(try file.text(ofPath: file.fragment(named: "b")).bytes.isEmpty)
    }

    @Test(arguments: [
        ("/etc/gattherd/gattherd.yaml", "/etc/gattherd/a.key"), ("conf/gattherd.yaml", "conf/a.key"),
        ("gattherd.yaml", "a.key"), ("../gattherd.yaml", "../a.key"),
    ])
    func `a key file is named so that the configuration finds it`(main: String, path: String) {
        let value = ConfigurationFile(main, [:]).value(naming: path)
        let text = "devices: [{name: a, address: 'C0:FF:EE:00:00:01', bind_key_file: '\(value)'}]"
        let configuration = ConfigurationFile.configuration(of: [ConfigSource(name: main, text: text)])
        #expect(configuration.devices.first?.bindKeyFile?.value == path)
    }

    @Test(arguments: [
        ("/etc/gattherd/gattherd.yaml", "/etc/gattherd/gattherd.d/a.key", "gattherd.d/a.key"),
        ("conf/gattherd.yaml", "conf/gattherd.d/a.key", "gattherd.d/a.key"),
        ("gattherd.yaml", "/run/a.key", "/run/a.key"),
        ("/etc/gattherd/gattherd.yaml", "/etc/gattherd2/a.key", "/etc/gattherd2/a.key"),
    ])
    func `the name of a key file stays right if the folder moves`(main: String, path: String, value: String) {
        #expect(ConfigurationFile(main, [:]).value(naming: path) == value)
    }

    @Test func `files with the names of YAML files that are not read are reported, also in the log`() throws {
        #expect(file.unreadFiles.isEmpty)
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        for name in ["b.yaml", "c.yml", "D.YAML", ".e.yml", "f.key", "g.yaml.bak"] {
            try folder.write("devices: []\n", to: "gattherd.d/\(name)")
        }
        let names = ["D.YAML", "c.yml"].map { file.fragmentFolder + "/" + $0 }
        #expect(file.unreadFiles.map(\.file) == names)
        #expect(file.unreadFiles.allSatisfy { $0.severity == .warning })
        let entries = Locked<[LogEntry]>([])
        let log = Log(threshold: .warning) { entry in entries.withLock { $0.append(entry) } }
        try file.parsed().logWarnings(of: file, log)
        let paths = entries.withLock { $0 }.flatMap { $0.fields.filter { $0.key == "path" }.map(\.value) }
        #expect(paths == names)
    }

    @Test func `a file of megabytes is a mistake`() throws {
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        try folder.write("#" + String(repeating: "x", count: 4 << 20) + "\n", to: "gattherd.d/large.yaml")
        let errors = file.parsedLeniently().errors
        #expect(errors.map(\.file) == [file.fragment(named: "large")])
        #expect(errors.first?.description.contains("more than 4 MiB") == true)
    }

    @Test func `an existing file is not replaced`() throws {
        try file.add(source())
        #expect(throws: GatewayError.self) { try file.add(source("devices: []\n")) }
        #expect(try file.parsed().devices.map(\.name.value) == ["a", "b"])
    }

    @Test func `a file that is set anew keeps its permissions`() throws {
        try file.set(source(), replacing: nil)
        let path = file.fragment(named: "b")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let next = source("devices: [{name: c, address: C0:FF:EE:00:00:03}]\n")
        let other = ConfigSource(name: file.fragment(named: "gateway"), text: "gateway: attic\n")
        let configuration = try file.parsed(with: [next, other])
        #expect(configuration.devices.map(\.name.value) == ["a", "c"] && configuration.gateway == "attic")
        try file.set(next, replacing: source().bytes)
        #expect(try file.parsed().devices.map(\.name.value) == ["a", "c"])
        #expect(try mode(path) == "\(0o600)")
    }

    @Test func `a file that was changed meanwhile is not set`() throws {
        let next = source("devices: [{name: c, address: C0:FF:EE:00:00:03}]\n")
        #expect(throws: GatewayError.self) { try file.set(next, replacing: source().bytes) }
        try file.add(source())
        #expect(throws: GatewayError.self) { try file.set(next, replacing: nil) }
        let error = #expect(throws: GatewayError.self) { try file.set(next, replacing: next.bytes) }
        #expect(error?.message.contains("was changed meanwhile") == true)
        #expect(try file.parsed().devices.map(\.name.value) == ["a", "b"])
    }

    @Test func `a file is deleted, unless it was changed meanwhile or is a link`() throws {
        try file.add(source())
        let path = file.fragment(named: "b")
        let error = #expect(throws: GatewayError.self) { try file.delete(path, with: []) }
        #expect(error?.message.contains("was changed meanwhile") == true)
        let link = file.fragment(named: "link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        #expect(throws: GatewayError.self) { try file.delete(link, with: source().bytes) }
        try FileManager.default.removeItem(atPath: link)
        try file.delete(path, with: source().bytes)
        #expect(try file.parsed().devices.map(\.name.value) == ["a"])
        #expect(throws: GatewayError.self) { try file.delete(path, with: source().bytes) }
    }

    @Test func `a symbolic link at the path of the file is not followed`() throws {
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: file.fragment(named: "b"),
            withDestinationPath: folder.file("elsewhere")
        )
        #expect(throws: GatewayError.self) { try file.add(source()) }
        #expect(!FileManager.default.fileExists(atPath: folder.file("elsewhere")))
    }

    @Test func `the remains of an interrupted addition are not read, and do not hinder the next one`() throws {
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        let draft = file.fragmentFolder + "/.b.yaml.part"
        try Data("devices: [{name".utf8).write(to: URL(filePath: draft))
        let part = file.fragmentFolder + ".part"
        try FileManager.default.createDirectory(atPath: part, withIntermediateDirectories: false)
        #expect(try file.parsed().devices.map(\.name.value) == ["a"])
        try file.add(source())
        #expect(try file.parsed().devices.map(\.name.value) == ["a", "b"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: file.fragmentFolder) == ["b.yaml"])
    }

    @Test func `the errors of a new file name the file, the line and the column`() {
        let errors = #expect(throws: ConfigErrors.self) {
            try file.parsed(with: [source("devices:\n  - {name: a, address: C0:FF:EE:00:00:02}\n")])
        }
        #expect(errors?.description.hasPrefix("\(file.fragment(named: "b")):2:12: ") == true)
    }
}
