import FoundationEssentials
import GattherdConfig
import GattherdHTTP
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

@testable import GattherdGateway

/// Changes of the configuration's files by the dashboard.
@Suite struct ConfigurationEditorTests {
    private static let main = "gateway: lab\ndevices:\n  - {name: strap, address: 'C0:FF:EE:00:00:01'}\n"

    private let folder: TemporaryFolder
    private let file: ConfigurationFile
    private let changes = PendingChanges()
    private let editor: ConfigurationEditor
    private let devices: DeviceEditor

    init() throws {
        folder = try TemporaryFolder()
        file = ConfigurationFile(try folder.write(Self.main, to: "gattherd.yaml"))
        let running = RunningConfiguration(try file.parsed(), ProfileRegistry(), [])
        editor = ConfigurationEditor(file, running, changes)
        devices = DeviceEditor(editor, running)
    }

    /// Runs `body` while reloads have these outcomes, the last of them from then on.
    private func reloading(_ outcomes: [ReloadOutcome], _ body: () async throws -> Void) async throws {
        let task = Task { [changes] in
            var rest = outcomes[...]
            for await _ in changes.wakes {
                for waiter in changes.dequeue().reloadWaiters {
                    if let outcome = rest.count > 1 ? rest.popFirst() : rest.first { waiter.yield(outcome) }
                    waiter.finish()
                }
            }
        }
        defer { task.cancel() }
        try await body()
    }

    private func source(_ text: String, _ name: String = "gattherd.yaml") -> ConfigSource {
        ConfigSource(name: folder.file(name), text: text)
    }

    private func text(_ name: String = "gattherd.yaml") throws -> String {
        try String(contentsOfFile: folder.file(name), encoding: .utf8)
    }

    private func request(_ members: String) throws -> NewDevice { try NewDevice(json: members) }

    // MARK: - Files

    @Test func `a draft is checked as if it had replaced its file`() {
        let typo = editor.findings(with: source("gatewy: lab\n")).findings
        let words = "unknown key 'gatewy' in the configuration; did you mean 'gateway'?"
        #expect(typo.map(\.problem.description) == [words])
        #expect(typo.first?.place?.line == 1)
        let renamed = editor.findings(with: source("gateway: yard\n"))
        #expect(renamed.findings.isEmpty && renamed.waiting == ["gateway"])
    }

    @Test(arguments: [
        ("missing/history.db", "history's folder '"), ("gattherd.yaml", "is text, not a history"),
        (String(repeating: "x", count: 120), "the path has more than 107 bytes"),
    ])
    func `a draft with which the daemon would not start has an error`(path: String, words: String) throws {
        let findings = editor.findings(with: source("history: {path: \(path)}\n")).findings
        let finding = try #require(findings.first)
        #expect(findings.count == 1 && finding.severity == .error && finding.place?.line == 1)
        #expect(finding.problem.description.contains(words), "\(finding.problem)")
    }

    @Test func `a disk that is unmounted for a while does not prevent changes of devices`() throws {
        try folder.write("history: {path: missing/history.db}\n", to: "gattherd.yaml")
        let running = RunningConfiguration(try file.parsed(), ProfileRegistry(), [])
        let editor = ConfigurationEditor(file, running, changes)
        let draft = source("devices: [{name: strap, address: 'C0:FF:EE:00:00:01'}]\n", "gattherd.d/strap.yaml")
        #expect(editor.findings(with: draft).findings.isEmpty)
    }

    @Test func `however many warnings there are, an error is found`() {
        let silence = (0...1000).map { "s\($0): 30s" }.joined(separator: ", ")
        let sensor = "  - {name: sensor, address: 'C0:FF:EE:00:00:02', bind_key_file: key}\n"
        let text = Self.main.replacing("'}", with: "', silence: {\(silence)}}") + sensor
        let findings = editor.findings(with: source(text)).findings
        #expect(findings.count { $0.severity == .warning } > 900)
        #expect(findings.contains { "\($0.problem)".hasPrefix("'bind_key_file' is for devices with a profile") })
    }

    @Test func `an applied file replaces the other one and keeps its permissions`() async throws {
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o640]
        try FileManager.default.setAttributes(attributes, ofItemAtPath: file.path)
        try await reloading([.done(waiting: ["gateway"])]) {
            let before = try file.text(ofPath: file.path)
            let waiting = try await editor.apply(.init(source: source("gateway: yard\n"), before: before))
            #expect(waiting == ["gateway"])
        }
        #expect(try text() == "gateway: yard\n")
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions]
        #expect(mode.map { "\($0)" } == "\(0o640)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["gattherd.yaml"])
    }

    @Test func `a file that the daemon cannot use is replaced by the one before`() async throws {
        try await reloading([.failed("no such profile"), .done(waiting: [])]) {
            let before = try file.text(ofPath: file.path)
            let error = await #expect(throws: BackendError.self) {
                try await editor.apply(.init(source: source("gateway: yard\n"), before: before))
            }
            #expect(error?.detail == "no such profile")
        }
        #expect(try text() == Self.main)
    }

    @Test func `a new file that the daemon cannot use is removed`() async throws {
        let new = source("devices: []\n", "gattherd.d/new.yaml")
        try await reloading([.failed("no"), .done(waiting: [])]) {
            await #expect(throws: BackendError.self) { try await editor.apply(.init(source: new, before: nil)) }
        }
        #expect(!FileManager.default.fileExists(atPath: new.name))
    }

    @Test(arguments: [("", true), (" \r\n\t\n", true), ("# log\n", false)])
    func `a file without text is deleted, except for the main one`(text: String, isDeleted: Bool) async throws {
        let old = source("log: {level: debug}\n", "gattherd.d/log.yaml")
        try file.add(old)
        try await reloading([.done(waiting: [])]) {
            for path in [old.name, file.path] {
                let before = try file.text(ofPath: path)
                _ = try await editor.apply(.init(source: ConfigSource(name: path, text: text), before: before))
            }
        }
        #expect(FileManager.default.fileExists(atPath: old.name) == !isDeleted)
        #expect(try self.text() == text)
    }

    @Test func `a file without text that the daemon cannot use is replaced by the one before`() async throws {
        let old = source("log: {level: debug}\n", "gattherd.d/log.yaml")
        try file.add(old)
        try await reloading([.failed("no"), .done(waiting: [])]) {
            let before = try file.text(ofPath: old.name)
            let change = ConfigurationEditor.Change(source: source("", "gattherd.d/log.yaml"), before: before)
            await #expect(throws: BackendError.self) { try await editor.apply(change) }
        }
        #expect(try text("gattherd.d/log.yaml") == "log: {level: debug}\n")
    }

    @Test func `a file that was changed meanwhile is not replaced`() async throws {
        let before = try file.text(ofPath: file.path)
        try folder.write("gateway: other\n", to: "gattherd.yaml")
        let error = await #expect(throws: BackendError.self) {
            try await editor.apply(.init(source: source("gateway: yard\n"), before: before))
        }
        #expect(error?.kind == .conflict)
        #expect(try text() == "gateway: other\n")
    }

    @Test(arguments: [true, false])
    func `a file that a person changes during a failed reload stays`(isNew: Bool) async throws {
        let name = isNew ? "gattherd.d/new.yaml" : "gattherd.yaml"
        let path = folder.file(name)
        let task = Task { [changes] in
            for await _ in changes.wakes {
                for waiter in changes.dequeue().reloadWaiters {
                    try Data("gateway: mine\n".utf8).write(to: URL(filePath: path))
                    waiter.yield(.failed("no such profile"))
                    waiter.finish()
                }
            }
        }
        defer { task.cancel() }
        let change = ConfigurationEditor.Change(
            source: source("gateway: yard\n", name),
            before: isNew ? nil : try file.text(ofPath: path)
        )
        let error = await #expect(throws: BackendError.self) { try await editor.apply(change) }
        #expect(error?.detail == "no such profile")
        #expect(try text(name) == "gateway: mine\n")
    }

    @Test func `a symbolic link at the path of a file is not replaced`() async throws {
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        let link = file.fragment(named: "link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file.path)
        #expect(file.obstacle(toReplacing: link)?.contains("is a link") == true)
        #expect(file.obstacle(toReplacing: file.path) == nil)
        let change = ConfigurationEditor.Change(
            source: source("gateway: yard\n", "gattherd.d/link.yaml"),
            before: try file.text(ofPath: file.path)
        )
        await #expect(throws: BackendError.self) { try await editor.apply(change) }
        #expect(try text() == Self.main)
    }

    @Test(arguments: [
        ("gattherd.yaml", true), ("gattherd.d/strap.yaml", true), ("gattherd.d/A.b-1_2.yaml", true),
        ("gattherd.d/.strap.yaml", false), ("gattherd.d/../gattherd.yaml", false), ("gattherd.d/a/b.yaml", false),
        ("other.yaml", false), ("/etc/passwd", false), ("gattherd.d/strap.key", false), ("", false),
    ])
    func `only files of the configuration have names`(name: String, isKnown: Bool) {
        #expect((file.path(named: name) != nil) == isKnown)
    }

    @Test(arguments: [
        ("gattherd.d/my sensors.yaml", true), ("gattherd.d/Küche.yaml", true), ("gattherd.d/+&?.yaml", true),
        ("gattherd.d/.draft.yaml", false), ("gattherd.d/my notes.txt", false),
    ])
    func `a file that the daemon reads has its name, whatever the letters are`(name: String, isRead: Bool) throws {
        #expect(file.path(named: name) == nil)
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        let path = try folder.write("devices: []\n", to: name)
        #expect(file.path(named: name) == (isRead ? path : nil))
    }

    // MARK: - Devices

    @Test func `a device is added in the same way as by the command line`() async throws {
        try await reloading([.done(waiting: [])]) {
            let members = #""address":"A4:C1:38:11:22:33","name":"kitchen","title":"Window","area":"Kitchen""#
            _ = try await devices.add(try request(members + #","preview":true"#))
            #expect(!FileManager.default.fileExists(atPath: folder.file("gattherd.d")))
            _ = try await devices.add(try request(members))
        }
        #expect(
            try text("gattherd.d/kitchen.yaml") == """
                # Added by the dashboard.
                devices:
                  - name: kitchen
                    address: A4:C1:38:11:22:33
                    title: 'Window'
                    area: 'Kitchen'

                """
        )
        let device = try #require(try file.parsed().devices.last)
        #expect(device.title == "Window" && device.area == "Kitchen")
    }

    @Test(arguments: [
        (#""address":"x","name":"a""#, "not a Bluetooth address"),
        (#""address":"A4:C1:38:11:22:33","name":"../a""#, "not a name of a device"),
        (#""address":"C0:FF:EE:00:00:01","name":"a""#, "is the device 'strap' already"),
        (#""address":"A4:C1:38:11:22:33","name":"strap""#, "there is a device 'strap' already"),
        (#""address":"A4:C1:38:11:22:33","name":"a","key":"12""#, "32 or 24 hexadecimal digits"),
        (#""address":"A4:C1:38:11:22:33","name":"a","title":"b\nc""#, "one line, without control characters"),
        (#""address":"A4:C1:38:11:22:33","name":"a","title":"b\u2028c""#, "one line, without control characters"),
        (#""address":"A4:C1:38:11:22:33","name":"a","profiles":["none"]"#, "no profile is named 'none'"),
    ])
    func `a device that would be wrong is refused with a reason`(members: String, reason: String) async throws {
        let request = try request(members)
        let error = await #expect(throws: BackendError.self) { try await devices.add(request) }
        #expect(error?.detail.contains(reason) == true, "\(error?.detail ?? "")")
        #expect(!FileManager.default.fileExists(atPath: folder.file("gattherd.d/a.yaml")))
    }

    @Test func `labels are written into the device's own file`() async throws {
        try await reloading([.done(waiting: [])]) {
            _ = try await devices.label("strap", try NewLabel(json: #""title":"Anna's strap","area":"Gym""#))
            let device = try #require(try file.parsed().devices.first)
            #expect(device.title == "Anna's strap" && device.area == "Gym" && device.note == nil)
            _ = try await devices.label("strap", try NewLabel(json: #""note":"spare""#))
        }
        #expect(try text() == Self.main.replacing("{name: strap", with: "{name: strap, note: 'spare'"))
    }

    @Test func `labels of an unknown device are refused, and so are invalid ones`() async throws {
        let label = try NewLabel(json: #""title":"a\u0007b""#)
        await #expect(throws: BackendError.self) { try await devices.label("strap", label) }
        let error = await #expect(throws: BackendError.self) { try await devices.label("dial", label) }
        #expect(error?.kind == .notFound)
        #expect(try text() == Self.main)
    }
}

extension NewDevice {
    /// Reads the members of an object.
    fileprivate init(json members: String) throws {
        let body = RequestBody(Array("{\(members)}".utf8))
        self = try NewDevice(try #require(body))
    }
}

extension NewLabel {
    /// Reads the members of an object.
    fileprivate init(json members: String) throws {
        let body = RequestBody(Array("{\(members)}".utf8))
        self = try NewLabel(try #require(body))
    }
}
