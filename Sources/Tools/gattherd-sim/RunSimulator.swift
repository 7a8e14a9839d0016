import GattherdDBus
import GattherdProcess
import GattherdSimulator
import GattherdSync
import Glibc

/// `gattherd-sim run`.
struct RunSimulator {
    private let options: Options

    init(_ options: Options) {
        self.options = options
    }

    func run() async throws(ProgramFailure) {
        let signals = ProcessSignals.stream(of: SIGTERM, SIGINT)
        guard options.words.count == 1 else { throw .usage("run takes one scenario") }
        let scenario = try Self.scenario(options.words[0])
        if let address = Options.address(options.bus ?? "private") {
            guard scenario.gateways.isEmpty else {
                throw .usage("a scenario of several gateways needs a bus for each; leave out --bus")
            }
            return try await simulate(scenario, at: [address], until: signals)
        }
        let buses = try Self.privateBuses(max(1, scenario.gateways.count))
        try await simulate(scenario, at: buses.map { .address($0.address) }, until: signals)
        for bus in buses { await bus.stop() }
    }

    private static func privateBuses(_ count: Int) throws(ProgramFailure) -> [PrivateBus] {
        do throws(PrivateBus.Failure) {
            var buses: [PrivateBus] = []
            for _ in 0..<count { buses.append(try PrivateBus()) }
            return buses
        } catch {
            throw ProgramFailure(message: error.description, code: EX_UNAVAILABLE)
        }
    }

    private func simulate(
        _ scenario: Scenario,
        at addresses: [DBusAddress],
        until signals: AsyncStream<Int32>
    ) async throws(ProgramFailure) {
        do throws(SimulatorError) {
            let simulator = try Simulator(scenario, on: addresses, truthPath: options.truth)
            try await Self.run(simulator, announcing: Self.lines(scenario, addresses), until: signals)
        } catch {
            throw ProgramFailure(message: error.description, code: EX_UNAVAILABLE)
        }
    }

    /// The address of the bus, or a line with the name of each gateway and the address of its bus.
    private static func lines(_ scenario: Scenario, _ addresses: [DBusAddress]) -> String {
        guard !scenario.gateways.isEmpty else { return addresses.map { "\($0)\n" }.joined() }
        return zip(scenario.gateways, addresses).map { "\($0.name) \($1)\n" }.joined()
    }

    private static func scenario(_ path: String) throws(ProgramFailure) -> Scenario {
        guard let text = contents(of: path) else {
            let reason = SystemError.current.description
            throw ProgramFailure(message: "cannot read \(path): \(reason)", code: EX_NOINPUT)
        }
        do throws(ScenarioError) {
            return try Scenario(text, file: path)
        } catch {
            throw ProgramFailure(message: "invalid scenario\n\(error)", code: EX_DATAERR)
        }
    }

    private static func contents(of path: String) -> String? {
        guard let file = unsafe fopen(path, "r") else { return nil }
        defer { unsafe fclose(file) }
        var octets: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while case let count = unsafe fread(&block, 1, block.count, file), count > 0 { octets += block[..<count] }
        return unsafe ferror(file) == 0 ? String(decoding: octets, as: UTF8.self) : nil
    }

    /// Runs the simulator until a signal arrives.
    private static func run(
        _ simulator: Simulator,
        announcing lines: String,
        until signals: AsyncStream<Int32>
    ) async throws(SimulatorError) {
        let result = await withTaskGroup { group in
            group.addTask { await outcome(of: simulator) }
            group.addTask {
                guard await simulator.waitUntilReady() else { return nil }
                write(lines, to: STDOUT_FILENO)
                return nil
            }
            group.addTask {
                for await _ in signals { return .success(()) }
                return nil
            }
            for await case let result? in group {
                group.cancelAll()
                return result
            }
            return Result<Void, SimulatorError>.success(())
        }
        try result.get()
    }

    private static func outcome(of simulator: Simulator) async -> Result<Void, SimulatorError>? {
        do throws(SimulatorError) {
            try await simulator.run()
            return .success(())
        } catch {
            return .failure(error)
        }
    }
}
