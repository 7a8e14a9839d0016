import Dispatch
import FoundationEssentials
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdGateway

/// Reloads of a daemon whose files hang.
@Suite(.timeLimit(.minutes(1))) struct ReloadServiceTests {
    private let folder: TemporaryFolder
    private let file: ConfigurationFile
    private let composition: Composition
    /// Ends the wait of threads that read a file with the name `hanging.yml`.
    private let gate = DispatchSemaphore(value: 0)
    /// The numbers of devices of the configurations that were applied.
    private let applied: Locked<[String]>
    private let isRefused: Locked<Bool>

    init() async throws {
        let (applied, isRefused) = (Locked<[String]>([]), Locked(false))
        (self.applied, self.isRefused) = (applied, isRefused)
        folder = try TemporaryFolder()
        file = ConfigurationFile(try folder.write(Self.text(of: folder, devices: 1), to: "gattherd.yaml"))
        var threads = ReloadThreads()
        threads.limit = .milliseconds(1)
        let start = threads.start
        threads.start = { name, body in !isRefused.withLock(\.self) && start(name, body) }
        composition = try await Composition(
            try file.parsed(),
            from: file,
            log: Self.log(applied, gate),
            recent: RecentLog { "" },
            restart: RestartSwitch([:]),
            threads: threads
        )
    }

    private static func text(of folder: TemporaryFolder, devices: Int) -> String {
        let list = (1...devices).map { "{name: strap-\($0), address: \"C0:FF:EE:00:00:0\($0)\"}" }
        return """
            gateway: test
            bluetooth: {bus: "unix:path=\(folder.file("no-bus"))"}
            history: {path: history.db}
            devices: [\(list.joined(separator: ", "))]
            """
    }

    /// A log that hangs the thread that reads a folder with a file that is not read.
    private static func log(_ applied: Locked<[String]>, _ gate: DispatchSemaphore) -> Log {
        Log(threshold: .notice) { entry in
            if entry.message == "a file of the configuration is not read" { gate.wait() }
            guard entry.message == "the configuration was reloaded" else { return }
            applied.withLock { $0 += entry.fields.filter { $0.key == "devices" }.map(\.value) }
        }
    }

    /// Writes a configuration with two devices, which hangs its readers until the gate is open.
    private func writeHangingFiles() throws {
        try folder.write(Self.text(of: folder, devices: 2), to: "gattherd.yaml")
        try FileManager.default.createDirectory(atPath: file.fragmentFolder, withIntermediateDirectories: true)
        try folder.write("", to: "gattherd.d/hanging.yml")
    }

    @Test func `files that are read too late are applied then, and the status is free of the error`() async throws {
        let (composition, file) = (composition, file)
        let changes = Task { await composition.followChanges(file) }
        defer { changes.cancel() }
        try writeHangingFiles()
        guard case .unread? = await composition.changes.reloaded() else {
            Issue.record("files that hang are read")
            return
        }
        #expect(composition.reloads.status?.unread == true)
        #expect(applied.withLock { $0 } == [])
        gate.signal()
        try await eventually { applied.withLock { $0 } == ["2"] && composition.reloads.status == nil }
    }

    @Test func `a reload without a thread applies the late files of an earlier one; its error stays`() async throws {
        try writeHangingFiles()
        guard case .unread? = await composition.reloads.reload(file) else {
            Issue.record("files that hang are read")
            return
        }
        gate.signal()
        // The end of the late thread.
        for await _ in composition.changes.wakes { break }
        isRefused.withLock { $0 = true }
        guard case .unread(let reason)? = await composition.reloads.reload(file) else {
            Issue.record("files are read without a thread")
            return
        }
        #expect(reason.contains("refuses another thread"))
        #expect(applied.withLock { $0 } == ["2"])
        #expect(composition.reloads.status?.error == reason)
        await composition.reloads.finish(file)
        #expect(applied.withLock { $0 } == ["2"], "the late files are applied once")
    }
}
