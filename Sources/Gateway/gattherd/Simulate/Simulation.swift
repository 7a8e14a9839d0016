import GattherdDaemon
import GattherdModel
import GattherdSimulator
import GattherdSync
import Glibc

/// Simulated peripherals, a broker and the daemon, each in its own process.
struct Simulation: Sendable {
    private let scenario: ScenarioFile
    private let folder: SimulationFolder
    private let database: SimulatedDatabase?
    /// The started parts, in that order.
    private let parts = Locked<[SimulationPart]>([])

    init(_ scenario: ScenarioFile, in folder: SimulationFolder, _ database: SimulatedDatabase? = nil) {
        self.scenario = scenario
        self.folder = folder
        self.database = database
    }

    /// Prints a line; a closed standard error is ignored.
    static func say(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        _ = unsafe write(STDOUT_FILENO, bytes, bytes.count)
    }

    /// Starts everything and returns the part that ends first; a cancelled task starts no further parts.
    ///
    /// - Throws: ``CommandFailure`` if a part cannot be started.
    func run() async throws(CommandFailure) -> SimulationPart {
        let gateways = try SimulatedGateway.all(of: scenario.scenario, in: folder)
        let count = scenario.scenario.peripherals.count
        Self.say("simulating \(count) \(count == 1 ? "peripheral" : "peripherals") of \(scenario.path)")
        let server = try await startDatabase(gateways.map(\.name))
        if let server, server.hasEnded { return server }
        let simulator = try startSimulator()
        let announcement = await answer(of: simulator) { simulator.firstLines(gateways.count) }
        guard let lines = announcement else { return simulator }
        let port = try LoopbackPort.free()
        let broker = try startBroker(port)
        guard await answer(of: broker, { LoopbackPort.isOpen(port) ? true : nil }) != nil else { return broker }
        let httpPorts = try LoopbackPort.free(gateways.count)
        var started: [(files: SimulationFiles, daemon: SimulationPart)] = []
        for ((gateway, line), httpPort) in zip(zip(gateways, lines), httpPorts) {
            var files = gateway.files(simulatorLine: line, port: port, httpPort: httpPort)
            files.database = database?.url()
            started.append((files, try startDaemon(gateway, files)))
        }
        Self.say(directions(started.map(\.files)))
        let running = [server, simulator, broker].compactMap(\.self) + started.map(\.daemon)
        return await firstToEnd(of: running, whileReporting: started)
    }

    private func directions(_ files: [SimulationFiles]) -> String {
        let isSite = !scenario.scenario.gateways.isEmpty
        let own = isSite ? SimulationFiles.directions(files, in: folder) : files.map(\.directions).joined()
        return own + (database?.directions ?? "") + "Ctrl-C stops everything.\n"
    }

    /// Ends all parts, the last one first.
    func stop() async {
        for part in parts.withLock({ $0 }).reversed() { await part.stop() }
    }

    /// Starts the database, if there is one, and makes the schema; returns a part that has ended if it failed.
    private func startDatabase(_ gateways: [String]) async throws(CommandFailure) -> SimulationPart? {
        guard let database else { return nil }
        let (initdb, log) = (database.preparation, folder.file("postgres.log"))
        let preparation = try start("initdb", initdb.program, initdb.arguments, log: log)
        await preparation.wait()
        guard preparation.hasSucceeded else { return preparation }
        let (program, arguments) = database.server
        let server = try start("PostgreSQL", program, arguments, log: log, endSignal: SIGINT)
        while !server.hasEnded, !Task.isCancelled {
            guard (try? await database.prepare(gateways)) == nil else { break }
            try? await Task.sleep(for: Self.pollPause)
        }
        return server
    }

    private func startSimulator() throws(CommandFailure) -> SimulationPart {
        let (program, log) = (OwnProgram.sibling("gattherd-sim"), folder.file("gattherd-sim.log"))
        return try start("the simulator", program, ["run", "--bus", "private", scenario.path], log: log)
    }

    /// Starts the daemon of a gateway.
    ///
    /// The configuration is written first: it names the token even if the program is killed before the token is
    /// written.
    private func startDaemon(
        _ gateway: SimulatedGateway,
        _ files: SimulationFiles
    ) throws(CommandFailure) -> SimulationPart {
        let configuration = files.configuration(gateway.peripherals)
        try files.folder.write(configuration, to: SimulationFiles.configurationName)
        try files.folder.write(SimulationFiles.token, to: SimulationFiles.tokenName, isSecret: true)
        let (program, arguments) = (OwnProgram.path, ["run", "--config", files.configurationPath])
        return try start(gateway.title, program, arguments, log: files.folder.file("gattherd.log"))
    }

    /// Debian installs the broker in a folder that is seldom in PATH.
    private func startBroker(_ port: UInt16) throws(CommandFailure) -> SimulationPart {
        let name = SimulationFiles.brokerConfigurationName
        try folder.write(SimulationFiles.brokerConfiguration(port), to: name)
        let standard = "/usr/sbin/mosquitto"
        let program = unsafe access(standard, X_OK) == 0 ? standard : "mosquitto"
        return try start("the broker", program, ["-c", folder.file(name)], log: folder.file("mosquitto.log"))
    }

    private func start(
        _ title: String,
        _ program: String,
        _ arguments: [String],
        log: String,
        endSignal: Int32 = SIGTERM
    ) throws(CommandFailure) -> SimulationPart {
        guard !Task.isCancelled else { throw CommandFailure(.general, nil) }
        let part = try SimulationPart(title, program, arguments, log: log, endSignal: endSignal)
        parts.withLock { $0.append(part) }
        return part
    }

    /// The pause between two checks of a starting part, as parts do not report that they are ready.
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
        whileReporting gateways: [(files: SimulationFiles, daemon: SimulationPart)]
    ) async -> SimulationPart {
        await withTaskGroup(of: SimulationPart?.self) { group in
            for part in parts {
                group.addTask {
                    await part.wait()
                    return part
                }
            }
            group.addTask {
                await report(gateways)
                return nil
            }
            defer { group.cancelAll() }
            for await case let part? in group { return part }
            return parts[0]
        }
    }

    /// Reports when all devices of the only gateway are ready; with several gateways, each device that becomes ready.
    private func report(_ gateways: [(files: SimulationFiles, daemon: SimulationPart)]) async {
        guard scenario.scenario.gateways.isEmpty, let (files, daemon) = gateways.first else {
            return await reportLinks(gateways.map(\.files))
        }
        let count = await answer(of: daemon) { readyCount(files) }
        if let count { Self.say("\(count) of \(count) devices are ready") }
    }

    /// The pause between two reports of the devices that are ready at several gateways.
    private static let reportPause = Duration.milliseconds(500)

    /// Reports each device that becomes ready at a gateway.
    private func reportLinks(_ gateways: [SimulationFiles]) async {
        var known: Set<String> = []
        while !Task.isCancelled {
            let lines = gateways.flatMap { files in
                readyDevices(files).map { "\($0) is ready at \(files.gateway)" }
            }
            for line in lines where !known.contains(line) { Self.say(line) }
            known = Set(lines)
            try? await Task.sleep(for: Self.reportPause)
        }
    }

    /// Returns the number of devices once all of them are ready.
    private func readyCount(_ files: SimulationFiles) -> Int? {
        guard case .status(let status)? = try? ControlClient.ask(.status, at: files.socketPath) else { return nil }
        let isReady = !status.devices.isEmpty && status.devices.allSatisfy { $0.state == LinkState.ready.rawValue }
        return isReady ? status.devices.count : nil
    }

    private func readyDevices(_ files: SimulationFiles) -> [String] {
        guard case .status(let status)? = try? ControlClient.ask(.status, at: files.socketPath) else { return [] }
        return status.devices.filter { $0.state == LinkState.ready.rawValue }.map(\.device)
    }
}

/// A gateway of a simulation: its folder and the peripherals of its configuration.
struct SimulatedGateway: Sendable {
    let name: String
    /// The daemon's name in messages.
    let title: String
    let folder: SimulationFolder
    let peripherals: [PeripheralSpec]

    /// The gateways of a scenario: one with all peripherals in `folder`, or several with folders inside and the
    /// peripherals that come into their reach.
    ///
    /// - Throws: ``CommandFailure`` if a folder cannot be made.
    static func all(of scenario: Scenario, in folder: SimulationFolder) throws(CommandFailure) -> [SimulatedGateway] {
        guard !scenario.gateways.isEmpty else {
            let peripherals = scenario.peripherals
            return [SimulatedGateway(name: "simulated", title: "the daemon", folder: folder, peripherals: peripherals)]
        }
        var gateways: [SimulatedGateway] = []
        for gateway in scenario.gateways {
            let name = gateway.name.lowercased()
            let gateway = SimulatedGateway(
                name: name,
                title: "the daemon of \(name)",
                folder: try folder.subfolder(name),
                peripherals: scenario.peripherals(inReachOf: gateway)
            )
            gateways.append(gateway)
        }
        return gateways
    }

    /// Returns the gateway's files for the simulator's line: `ADDRESS`, or `NAME ADDRESS`.
    func files(simulatorLine line: Substring, port: UInt16, httpPort: UInt16) -> SimulationFiles {
        let bus = line.split(separator: " ").last.map(String.init) ?? ""
        return SimulationFiles(folder: folder, gateway: name, bus: bus, port: port, httpPort: httpPort)
    }
}
