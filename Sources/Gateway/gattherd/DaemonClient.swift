import GattherdConfig
import GattherdDaemon
import GattherdGateway

/// The connection to the daemon that runs with a configuration.
///
/// Mistakes that were added later are ignored: the daemon still uses the last valid configuration.
struct DaemonClient {
    /// The command that starts the daemon, also after each start of the machine.
    static let startCommand = "systemctl enable --now gattherd"
    /// The next step without a daemon.
    static let startAdvice = "no daemon runs with this configuration; start it: \(startCommand)"

    let path: String
    /// The errors of the configuration's files.
    private let errors: [ConfigError]
    /// True if the files set the path of history: the socket of a running daemon is at the path of its start.
    private let mayHaveMoved: Bool

    init(_ configuration: Configuration, errors: [ConfigError] = []) {
        mayHaveMoved = configuration.history.path.place != nil
        path = configuration.controlSocketPath
        self.errors = errors
    }

    init(_ arguments: Arguments) {
        let (configuration, errors) = ConfigurationFile(arguments).parsedLeniently()
        self.init(configuration, errors: errors)
    }

    /// Sends a request and returns the reply unless it is a refusal.
    func ask(_ call: ControlCall) throws(CommandFailure) -> ControlReply {
        let reply = try send(call)
        guard case .refused(let reason) = reply else { return reply }
        throw CommandFailure(.data, "gattherd: \(Terminal.harmless(reason))")
    }

    /// Sends a request for an action and prints the result.
    func order(_ call: ControlCall) throws(CommandFailure) {
        let reply = try ask(call)
        warn()
        if case .done(let words) = reply { Terminal.say(Terminal.harmless(words)) }
    }

    /// Makes the daemon read its configuration again, and prints the result.
    func reload() throws(CommandFailure) {
        switch try send(.reload) {
        case .done(let words): Terminal.say(Terminal.harmless(words))
        case .refused(let reason):
            let lines = reason.split(separator: "\n").map { Terminal.harmless(String($0)) }
            throw CommandFailure(.configuration, "gattherd: not reloaded\n" + lines.joined(separator: "\n"))
        case .unread(let reason):
            throw CommandFailure(.temporary, "gattherd: not reloaded yet: \(Terminal.harmless(reason))")
        default:
            throw CommandFailure(.software, "gattherd: the daemon's answer is unexpected; is it another version?")
        }
    }

    /// Returns true if a daemon answers, and false if none runs.
    ///
    /// - Throws: ``CommandFailure`` if the daemon hangs, or refuses this user.
    func isDaemonThere() throws(CommandFailure) -> Bool {
        do throws(ControlSocketError) {
            _ = try ControlClient.ask(.status, at: path)
            return true
        } catch {
            guard error.isNobodyThere else { throw failure(error) }
            return false
        }
    }

    /// Warns about the first error of the files, if there is one.
    func warn() {
        guard let error = errors.first else { return }
        let first = error.description.split(separator: "\n").first ?? ""
        let more = errors.count > 1 ? " (and \(errors.count - 1) more)" : ""
        Terminal.printError(
            """
            gattherd: the configuration is wrong, and the daemon keeps the last valid one; a restart would fail
            \(Terminal.harmless(String(first)))\(more)
            """
        )
    }

    /// Returns the errors of the configuration, or else the reason why no daemon answers.
    func failure(_ error: ControlSocketError) -> CommandFailure {
        guard error.isNobodyThere else { return CommandFailure(.unavailable, "gattherd: \(error.description)") }
        guard !errors.isEmpty else {
            let restart = "; after a change of history.path: systemctl restart gattherd"
            return CommandFailure(.unavailable, "gattherd: \(Self.startAdvice)" + (mayHaveMoved ? restart : ""))
        }
        let outcome = "gattherd: no daemon is found; correct the configuration, then start it or ask again"
        return CommandFailure(.configuration, ConfigErrors(errors).description + "\n" + outcome)
    }

    private func send(_ call: ControlCall) throws(CommandFailure) -> ControlReply {
        do throws(ControlSocketError) {
            return try ControlClient.ask(call, at: path)
        } catch {
            throw failure(error)
        }
    }
}
