import FoundationEssentials
import GattherdHTTP
import GattherdLog
import TestKit
import Testing

@testable import GattherdGateway

/// Restarts and files of the configuration that people at the dashboard request.
@Suite(.timeLimit(.minutes(1))) struct GatewayAdministrationTests {
    private let folder: TemporaryFolder
    private let file: ConfigurationFile
    private let composition: Composition
    private let restart = RestartSwitch([RestartSwitch.variable: RestartSwitch.promise])

    init() async throws {
        folder = try TemporaryFolder()
        let text = Self.text(in: folder, history: "history.db")
        file = ConfigurationFile(try folder.write(text, to: "gattherd.yaml"))
        composition = try await Composition(
            try file.parsed(),
            from: file,
            log: Log(threshold: .error) { _ in },
            recent: RecentLog { "" },
            restart: restart
        )
    }

    private static func text(in folder: TemporaryFolder, history: String) -> String {
        """
        gateway: test
        bluetooth: {bus: "unix:path=\(folder.file("no-bus"))"}
        history: {path: \(history)}
        """
    }

    /// Requests a restart while reloads are carried out.
    private func requestRestart() async -> Result<[UInt8], BackendError> {
        let (composition, file) = (composition, file)
        let changes = Task { await composition.followChanges(file) }
        defer { changes.cancel() }
        return await composition.http.administration.restart()
    }

    @Test func `a restart with files with which the daemon would not start is refused`() async throws {
        try folder.write(Self.text(in: folder, history: "missing/history.db"), to: "gattherd.yaml")
        guard case .failure(let error) = await requestRestart() else {
            Issue.record("the restart is accepted")
            return
        }
        #expect(error.kind == .refused)
        #expect(error.detail.contains("history's folder '\(folder.file("missing"))' cannot be used"))
        #expect(!restart.isRequested)
    }

    @Test func `a restart with usable files is requested`() async throws {
        try FileManager.default.createDirectory(atPath: folder.file("other"), withIntermediateDirectories: true)
        try folder.write(Self.text(in: folder, history: "other/history.db"), to: "gattherd.yaml")
        guard case .success = await requestRestart() else {
            Issue.record("the restart is refused")
            return
        }
        #expect(restart.isRequested)
    }

    @Test func `each listed file can be opened, and an unknown one cannot`() async throws {
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        try folder.write("devices: []\n", to: "gattherd.d/my sensors.yaml")
        let administration = composition.http.administration
        let list = String(decoding: await administration.configurationFiles(), as: UTF8.self)
        #expect(list.contains(#""files":["gattherd.yaml","gattherd.d/my sensors.yaml"]"#))
        let content = try await administration.configurationFile("gattherd.d/my sensors.yaml").get()
        let text = String(decoding: content, as: UTF8.self)
        #expect(text.contains(#""text":"devices: []\u000a""#))
        guard case .failure(let error) = await administration.configurationFile("gattherd.d/your sensors.yaml") else {
            Issue.record("a file that does not exist is opened")
            return
        }
        #expect(error.kind == .notFound)
    }

    @Test(arguments: [("strap", ["strap"]), ("-strap", ["--", "-strap"]), ("--help", ["--", "--help"])])
    func `a name that begins with a hyphen is no option of a command`(device: String, words: [String]) {
        let arguments = CommandRun(file).arguments("why", [device])
        #expect(arguments == ["why", "--json", "--config", file.path] + words)
    }
}
