import Foundation
import GattherdProcess
import TestKit
import Testing

/// The simulator and a configuration with its bus.
final class PeripheralBench: Sendable {
    let folder: TemporaryFolder
    private let child: ChildProcess
    let bus: String

    init(_ scenario: String, files: [String: String] = [:]) async throws {
        let folder = try TemporaryFolder()
        for (name, text) in files { try folder.write(text, to: name) }
        let output = try OutputFile(folder.file("sim.out"))
        let child = try ChildProcess(
            Programs.path("gattherd-sim"),
            ["run", "--truth", folder.file("truth"), try folder.write(scenario, to: "scenario.yaml")],
            output: .descriptor(output.descriptor)
        )
        try await eventually { !output.lines.isEmpty || child.exitStatus != nil }
        (self.folder, self.child, bus) = (folder, child, String(output.lines.first ?? ""))
        try folder.write(
            "bluetooth: {bus: '\(bus)'}\ndevices: [{name: probe, address: C0:FF:EE:00:00:09}]\n",
            to: "gattherd.yaml"
        )
    }

    deinit {
        child.signal(SIGKILL)
    }

    func run(_ words: String...) async throws -> (Int32, String) { try await run(words) }

    func run(_ words: [String]) async throws -> (Int32, String) {
        let configuration = ["--config", folder.file("gattherd.yaml")]
        return try await Programs.run(Programs.path("gattherd"), words + configuration, errors: folder.file("err"))
    }

    /// Runs `body` while the daemon runs, once the device is ready.
    ///
    /// - Parameters:
    ///   - device: Further members of the device's configuration.
    ///   - settings: Further lines of the configuration.
    ///   - body: The test.
    /// - Throws: The body's error, or one of the daemon.
    func withDaemon(
        _ device: String = "",
        settings: String = "",
        _ body: () async throws -> Void
    ) async throws {
        let daemon = try startDaemon(device, settings: settings)
        defer { daemon.signal(SIGKILL) }
        try await eventually { try await run("status").1.contains("ready") }
        try await body()
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
    }

    /// Starts the daemon with the device, as ``withDaemon(_:settings:_:)`` does.
    func startDaemon(_ device: String = "", settings: String = "") throws -> ChildProcess {
        let words =
            "bluetooth: {bus: '\(bus)'}\nhistory: {path: '\(folder.file("readings.db"))'}\n"
            + "devices: [{name: probe, address: C0:FF:EE:00:00:09\(device)}]\n" + settings
        let file = try folder.write(words, to: "gattherd.yaml")
        return try ChildProcess(Programs.path("gattherd"), ["run", "--config", file], errors: .null)
    }

    /// Returns the number of the peripheral's events of one kind.
    ///
    /// The simulator answers an operation before it writes the event. Its answer to a later order shows that it has.
    func count(_ event: String) async throws -> Int {
        try await order("status")
        return try text("truth").split(separator: "\n").count { $0.contains("\"event\":\"\(event)\"") }
    }

    func order(_ words: String...) async throws {
        _ = try await Programs.run(Programs.path("gattherd-sim"), ["ctl", "--bus", bus] + words)
    }

    func text(_ name: String) throws -> String { try String(contentsOfFile: folder.file(name), encoding: .utf8) }
}
