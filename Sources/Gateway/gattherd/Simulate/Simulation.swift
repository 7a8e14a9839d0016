import GattherdDaemon
import GattherdModel
import GattherdSimulator
import GattherdSync
import Glibc

/// Simulated peripherals, a broker and the daemon, each in its own process.
struct Simulation: Sendable {
    private let scenario: ScenarioFile
    private let folder: SimulationFolder
    /// The started parts, in that order.
    private let parts = Locked<[SimulationPart]>([])

    init(_ scenario: ScenarioFile, in folder: SimulationFolder) {
        self.scenario = scenario
        self.folder = folder
    }

    /// Prints a line; a closed standard error is ignored.
    static func say(_ text: String) {
        let octets = Array((text + "\n").utf8)
        _ = unsafe write(STDOUT_FILENO, octets, octets.count)
    }

    /// Starts everything and returns the part that ends first; a cancelled task starts nothing more.
    ///
    /// - Throws: ``CommandFailure`` if a part cannot be started.
    func run() async throws(CommandFailure) -> SimulationPart {
        let count = scenario.scenario.peripherals.count
        Self.say("simulating \(count) \(count == 1 ? "peripheral" : "peripherals") of \(scenario.path)")
        let simulator = try startSimulator()
        guard let bus = await answer(of: simulator, { simulator.firstLine }) else { return simulator }
        let port = try LoopbackPort.free()
        let broker = try startBroker(port)
        guard await answer(of: broker, { LoopbackPort.isOpen(port) ? true : nil }) != nil else { return broker }
        let files = SimulationFiles(folder: folder, bus: bus, port: port, httpPort: try LoopbackPort.free())
        // The configuration is written first: it names the token even if the program is killed before the token is
        // written.
        let configuration = files.configuration(scenario.scenario.peripherals)
        try folder.write(configuration, to: SimulationFiles.configurationName)
        try folder.write(SimulationFiles.token, to: SimulationFiles.tokenName, isSecret: true)
        let daemon = try start("the daemon", OwnProgram.path, ["run", "--config", files.configurationPath], "gattherd")
        Self.say(files.directions)
        return await firstToEnd(of: [simulator, broker, daemon], whileReportingReadinessOf: files, daemon)
    }

    /// Ends all parts, the last one first.
    func stop() async {
        for part in parts.withLock({ $0 }).reversed() { await part.stop() }
    }

    private func startSimulator() throws(CommandFailure) -> SimulationPart {
        let program = OwnProgram.sibling("gattherd-sim")
        return try start("the simulator", program, ["run", "--bus", "private", scenario.path], "gattherd-sim")
    }

    /// Debian installs the broker in a folder that is seldom in PATH.
    private func startBroker(_ port: UInt16) throws(CommandFailure) -> SimulationPart {
        let name = SimulationFiles.brokerConfigurationName
        try folder.write(SimulationFiles.brokerConfiguration(port), to: name)
        let standard = "/usr/sbin/mosquitto"
        let program = unsafe access(standard, X_OK) == 0 ? standard : "mosquitto"
        return try start("the broker", program, ["-c", folder.file(name)], "mosquitto")
    }

    private func start(
        _ title: String,
        _ program: String,
        _ arguments: [String],
        _ log: String
    ) throws(CommandFailure) -> SimulationPart {
        guard !Task.isCancelled else { throw CommandFailure(.general, nil) }
        let part = try SimulationPart(title, program, arguments, log: folder.file(log + ".log"))
        parts.withLock { $0.append(part) }
        return part
    }

    /// The pause between two checks of a part that starts; parts report nothing.
    private static let pollPause = Duration.milliseconds(50)

    /// Waits for a value; `nil` if the part ends before, or the task is cancelled.
    private func answer<Value>(of part: SimulationPart, _ probe: () -> Value?) async -> Value? {
        while !part.hasEnded, !Task.isCancelled {
            if let value = probe() { return value }
            try? await Task.sleep(for: Self.pollPause)
        }
        return nil
    }

    private func firstToEnd(
        of parts: [SimulationPart],
        whileReportingReadinessOf files: SimulationFiles,
        _ daemon: SimulationPart
    ) async -> SimulationPart {
        await withTaskGroup(of: SimulationPart?.self) { group in
            for part in parts {
                group.addTask {
                    await part.wait()
                    return part
                }
            }
            group.addTask {
                let count = await answer(of: daemon) { readyCount(files) }
                if let count { Self.say("\(count) of \(count) devices are ready") }
                return nil
            }
            defer { group.cancelAll() }
            for await case let part? in group { return part }
            return daemon
        }
    }

    /// Returns the number of devices once all of them are ready.
    private func readyCount(_ files: SimulationFiles) -> Int? {
        guard case .status(let status)? = try? ControlClient.ask(.status, at: files.socketPath) else { return nil }
        let isReady = !status.devices.isEmpty && status.devices.allSatisfy { $0.state == LinkState.ready.rawValue }
        return isReady ? status.devices.count : nil
    }
}
