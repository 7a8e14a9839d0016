import FoundationEssentials
import GattherdDaemon
import GattherdGateway
import GattherdModel
import Glibc

extension CommandSpec {
    static let status = CommandSpec(
        name: "status",
        summary: "show adapters, devices and their links, the outputs and their backlogs",
        options: [
            ConfigurationFile.option,
            .flag("json", "print one JSON object"),
            .flag("watch", "refresh every second until Ctrl-C"),
        ],
        details: """
            Asks the daemon that runs with this configuration; run it as root, as the daemon's user or as a member of its
            group. Times are relative to now: the age of a link's state and of its last reading, and the time to the next
            attempt.

            On a terminal, --watch redraws one table that fits the terminal; elsewhere it prints one table after the other,
            and with --json one object a line. It continues while the daemon restarts. PER S is the number of readings in
            the last second.
            """,
        json: """
            {"version", "gateway", "started", "dropped", "configuration"?: {"restart_needed", "error"?, "unread"?}, "adapters": [{"address", "name", "powered", "discovering",
            "links", "slots"?, "connecting", "waiting"?, "last_recovery"?}], "devices": [{"device", "title"?, "area"?, "note"?, "address", "state", "since",
            "reason"?, "detail"?, "attempt", "next_retry"?, "adapter"?, "rssi"?, "profiles", "readings", "rejects",
            "undecodable"?: [text], "records"?: [{"stream", "state", "since", "done", "total"?, "new", "detail"?}], "last_reading"?, "last_heard"?, "lease"?: {"state", "owner"?, "epoch", "reason",
            "bids": [{"gateway", "standing", "rssi"?, "problem"?}], "problem"?}, "model"?, "suggested_profile"?, "only_advertises"?}], "outputs": [{"name", "kind", "state",
            "target", "backlog", "lag"?, "delivered", "skipped", "errors", "error"?, "next_try"?}],
            "fleet"?: {"held", "claims", "handovers": {cause: count}, "refused_controls": {reason: count}, "answer_age"?,
            "error"?}, "alerts"?: [{"alert", "device", "address", "since", "detail"}], "history": {"path", "seq", "size", "undelivered", "unstored", "error"?, "clock"?, "lost"?}}

            Times are RFC 3339 in UTC, sizes bytes, rssi dBm; keys with a ? may be left out.
            "state" is waiting, connecting, discovering, preparing, ready, disconnecting, disconnected, backingOff,
            held or failed. The "state" of an output is idle, connecting, connected, waiting (after a failed attempt),
            stopping or stopped; "lag" is the age in seconds of the oldest entry of its backlog. "configuration" is
            present if the last reload failed or changed sections that need a restart; "unread" is true if it failed because
            the files are not read in time. New keys may be added.
            """,
        exits: [.unavailable: "no daemon runs with this configuration"],
        examples: ["gattherd status", "gattherd status --watch", "gattherd status --json | jq '.outputs[].backlog'"],
        run: { (arguments) async throws(CommandFailure) in try await StatusCommand(arguments).run() }
    )
}

/// Prints the status of the running daemon.
struct StatusCommand {
    private let client: DaemonClient
    private let isJSON: Bool
    private let isWatching: Bool
    private let file: String

    init(_ arguments: Arguments) {
        file = ConfigurationFile(arguments).path
        client = DaemonClient(arguments)
        isJSON = arguments.has("json")
        isWatching = arguments.has("watch")
    }

    func run() async throws(CommandFailure) {
        let sample = StatusSample(try client.status())
        client.warn()
        guard isWatching else { return Terminal.say(try text(sample)) }
        if isJSON || isatty(STDOUT_FILENO) != 1 {
            try await printRepeatedly(sample)
        } else {
            await StatusScreen(client, file: file).run(from: sample)
        }
    }

    /// Prints statuses until the reader closes the pipe.
    private func printRepeatedly(_ first: StatusSample) async throws(CommandFailure) {
        var sample = first
        while true {
            Terminal.say(try text(sample) + (isJSON ? "" : "\n"))
            guard (try? await Task.sleep(for: StatusScreen.period)) != nil else { return }
            do throws(CommandFailure) {
                sample = StatusSample(try client.status(), after: sample)
            } catch {
                Terminal.printError(error.message ?? "")
            }
        }
    }

    private func text(_ sample: StatusSample) throws(CommandFailure) -> String {
        try isJSON
            ? json(sample.status)
            : StatusTable(sample, file: file).lines.map { Terminal.harmless($0.text) + "\n" }.joined()
    }

    private func json(_ status: DaemonStatus) throws(CommandFailure) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(status) else {
            throw CommandFailure(.software, "gattherd: cannot encode the result as JSON")
        }
        return String(decoding: data, as: UTF8.self)
    }
}

extension DaemonClient {
    func status() throws(CommandFailure) -> DaemonStatus {
        guard case .status(let status) = try ask(.status) else {
            throw CommandFailure(.software, "gattherd: the daemon's answer is unexpected; is it another version?")
        }
        return status
    }
}
