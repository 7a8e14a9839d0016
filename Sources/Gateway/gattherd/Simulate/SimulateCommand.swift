import GattherdProcess
import Glibc

extension CommandSpec {
    static let simulate = CommandSpec(
        name: "simulate",
        summary: "run everything without hardware: simulated peripherals, a broker, the daemon",
        positionals: [PositionalSpec(name: "SCENARIO", isOptional: true)],
        options: [
            .value("keep", "DIR", "work in DIR and keep it (default: a temporary folder)"),
            .value("postgres", "BIN", "also fill a throwaway PostgreSQL, whose programs are in the folder BIN"),
        ],
        details: """
            SCENARIO is a YAML file of peripherals, or the name of a scenario that comes with gattherd (default: lab). Starts
            gattherd-sim on a bus of its own, mosquitto on a free port of 127.0.0.1, and gattherd run with a
            configuration that names all peripherals. Ctrl-C ends everything.

            A scenario of several gateways, such as 'fleet', has a bus, a daemon, a dashboard and a folder inside DIR for each of
            them. Their configurations name the peripherals that come into their reach. Each device is reported when it
            becomes ready at a gateway.

            With --keep, the files of an earlier simulation in DIR are replaced, except for its history, which continues. The
            command refuses to start if DIR has a gattherd.yaml, mosquitto.conf, http-token or history.db of another origin, or
            while another simulation uses DIR.
            """,
        exits: [
            .data: "the scenario is wrong", .unavailable: "a part of it cannot be started, or ended by itself",
            .cannotCreate: "there is no folder to work in, or DIR is in use or not a simulation's",
            .noInput: "the scenario cannot be read",
        ],
        examples: ["gattherd simulate", "gattherd simulate fleet", "gattherd simulate --keep try my-peripherals.yaml"],
        run: { (arguments) async throws(CommandFailure) in try await SimulateCommand(arguments).run() }
    )
}

/// Runs a simulation until a signal, or until a part of it ends.
struct SimulateCommand {
    private enum End {
        case signal
        case part(SimulationPart)
        case failure(CommandFailure)
    }

    private let scenarioPath: String?
    private let keptPath: String?
    private let postgresPath: String?

    init(_ arguments: Arguments) {
        scenarioPath = arguments.positional(0)
        keptPath = arguments.value("keep")
        postgresPath = arguments.value("postgres")
    }

    func run() async throws(CommandFailure) {
        let signals = ProcessSignals.stream(of: SIGINT, SIGTERM, SIGHUP)
        // The reader of the output may go away; the started programs must end then, too.
        signal(SIGPIPE, SIG_IGN)
        let source = try ScenarioFile(scenarioPath)
        let folder = try SimulationFolder(keeping: keptPath)
        defer { folder.remove() }
        let database = try postgresPath.map { (path) throws(CommandFailure) in try SimulatedDatabase(programs: path) }
        defer { database?.remove() }
        let simulation = Simulation(source, in: folder, database)
        let end = await firstEnd(of: simulation, or: signals)
        await simulation.stop()
        switch end {
        case .signal: Simulation.say("stopped")
        case .part(let part): throw CommandFailure(.unavailable, part.obituary)
        case .failure(let failure): throw failure
        }
    }

    private func firstEnd(of simulation: Simulation, or signals: AsyncStream<Int32>) async -> End {
        await withTaskGroup { group in
            group.addTask {
                for await _ in signals { break }
                return End.signal
            }
            group.addTask {
                do throws(CommandFailure) {
                    return .part(try await simulation.run())
                } catch {
                    return .failure(error)
                }
            }
            defer { group.cancelAll() }
            return await group.next() ?? .signal
        }
    }
}
