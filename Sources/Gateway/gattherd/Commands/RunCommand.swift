import FoundationEssentials
import GattherdConfig
import GattherdDaemon
import GattherdGateway
import GattherdLog
import GattherdModel
import GattherdProcess
import GattherdSync
import Glibc

extension CommandSpec {
    static let run = CommandSpec(
        name: "run",
        summary: "the daemon: runs in the foreground until SIGTERM",
        options: [ConfigurationFile.option],
        details: """
            Connects the devices of the configuration and keeps them connected until SIGTERM or SIGINT. Then it commits
            and publishes pending readings for a few seconds; a second signal ends it at once. It waits for a missing
            adapter, bluetoothd, broker or disk space.

            SIGHUP reads the configuration and the profiles again. Devices, profiles, publishing rules and the log level
            change at once; unaffected links stay. Changes that need a restart are logged. An invalid configuration
            changes nothing.

            Logs go to journald with their fields under systemd; otherwise to standard error, as text on a terminal and as
            JSON lines elsewhere; see log in the configuration.

            The dashboard offers a restart if the environment has GATTHERD_RESTART=on-status-75, by which a supervisor
            promises to start the daemon again after it ends with status 75. The installed unit does.
            """,
        exits: [
            .cannotCreate: "history or the socket cannot be created; another daemon may have them, or too few files "
                + "may be opened",
            .inputOutput: "the history could not be closed completely",
            .temporary: "a restart was requested in the dashboard",
        ],
        run: { (arguments) async throws(CommandFailure) in
            // The first loop opens files.
            try DescriptorLimit.raised().expectRoom()
            try await withTaskExecutorPreference(LoopTaskExecutor(.tasks)) { () async throws(CommandFailure) in
                try await RunCommand(arguments).run()
            }
        }
    )
}

/// Runs the daemon until a signal.
struct RunCommand {
    private let file: ConfigurationFile
    private let restart = RestartSwitch(ProcessInfo.processInfo.environment)

    init(_ arguments: Arguments) {
        file = ConfigurationFile(arguments)
    }

    /// True if a person reads standard error; otherwise it is a log, which must not have secrets.
    private static var isWatched: Bool { isatty(STDERR_FILENO) == 1 }

    func run() async throws(CommandFailure) {
        let signals = ProcessSignals.stream(of: SIGTERM, SIGINT, SIGHUP, terminating: [SIGTERM, SIGINT])
        signal(SIGPIPE, SIG_IGN)
        let configuration: Configuration
        do throws(ConfigErrors) { configuration = try file.parsed() } catch {
            await Terminal.printErrorBriefly(Self.isWatched ? error.description : error.summary)
            throw CommandFailure(.configuration, nil)
        }
        do throws(GatewayError) {
            try await ServiceLog.run(configuration.log) { (log, recent) async throws(GatewayError) in
                try await run(configuration, log, recent, until: signals)
            }
        } catch {
            // A supervisor that restarts the daemon waits for its end.
            await Terminal.printErrorBriefly(Self.isWatched ? error.message : error.summary)
            // The restart does not depend on how well history was closed.
            throw CommandFailure(restart.isRequested ? .temporary : CommandFailure(error).code, nil)
        }
        if restart.isRequested { throw CommandFailure(.temporary, nil) }
    }

    private func run(
        _ configuration: Configuration,
        _ log: Log,
        _ recent: RecentLog,
        until signals: AsyncStream<Int32>
    ) async throws(GatewayError) {
        let composition = try await Composition(configuration, from: file, log: log, recent: recent, restart: restart)
        let stop = LatestValue(false)
        // Cancelled at the end of the scope.
        async let _ = watch(signals, stop) { composition.changes.reload() }
        async let _ = followRestart(stop)
        // A separate task: a file that blocks must not delay the end of the daemon.
        async let _ = composition.followChanges(file)
        try await composition.run { await stop.becomesTrue() }
    }

    private func followRestart(_ stop: LatestValue<Bool>) async {
        await restart.requested()
        if restart.isRequested { stop.set(true) }
    }

    private func watch(
        _ signals: AsyncStream<Int32>,
        _ stop: LatestValue<Bool>,
        _ reload: () -> Void
    ) async {
        for await number in signals {
            if number == SIGHUP { reload() } else { stop.set(true) }
        }
    }
}

extension LatestValue<Bool> {
    fileprivate func becomesTrue() async {
        for await state in watch() where state { return }
    }
}
