import Foundation
import GattherdProcess
import TestKit
import Testing

/// The simulator, and a configuration with its bus.
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
            ["run", try folder.write(scenario, to: "scenario.yaml")],
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

    func order(_ words: String...) async throws {
        _ = try await Programs.run(Programs.path("gattherd-sim"), ["ctl", "--bus", bus] + words)
    }

    func text(_ name: String) throws -> String { try String(contentsOfFile: folder.file(name), encoding: .utf8) }
}
