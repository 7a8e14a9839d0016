import GattherdProcess
import Glibc
import TestKit

/// The simulator as a program, on a private bus.
final class SimulatedStack: BluetoothStack {
    let bus: String
    let truthPath: String
    private let folder: TemporaryFolder
    private let simulator: ChildProcess

    init(_ scenario: String) async throws {
        folder = try TemporaryFolder()
        truthPath = folder.file("truth")
        let output = try OutputFile(folder.file("sim.out"))
        let simulator = try ChildProcess(
            Programs.path("gattherd-sim"),
            ["run", "--truth", truthPath, try folder.write(scenario, to: "scenario.yaml")],
            output: .descriptor(output.descriptor)
        )
        try await eventually { !output.lines.isEmpty || simulator.exitStatus != nil }
        guard let line = output.lines.first else {
            throw StackCrashed(description: "the simulator did not start; the reason is above")
        }
        self.simulator = simulator
        bus = String(line)
    }

    deinit {
        simulator.signal(SIGCONT)
        simulator.signal(SIGTERM)
    }

    func order(_ words: [String]) async throws {
        if words.first == "freeze-daemon" { return simulator.signal(words.last == "on" ? SIGSTOP : SIGCONT) }
        let errors = folder.file("ctl.err")
        let arguments = ["ctl", "--bus", bus] + words
        let (code, _) = try await Programs.run(Programs.path("gattherd-sim"), arguments, errors: errors)
        guard code == 0 else { throw OrderRefused(words, try OutputFile(errors).text) }
    }

    func stop() async throws {
        if let status = simulator.exitStatus {
            throw StackCrashed(description: "the simulator exited unexpectedly: \(status)")
        }
        simulator.signal(SIGTERM)
        _ = await simulator.wait()
        guard try !Truth(path: truthPath).entries.contains(where: { $0.event == "crash" }) else {
            throw StackCrashed(
                description: "a client crashed bluetoothd; see \"crash\" in the simulator's README"
            )
        }
    }
}
