import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdGateway
import GattherdHistory
import GattherdModel
import GattherdYAML
import Glibc

extension CommandSpec {
    static let why = CommandSpec(
        name: "why",
        summary: "explain a device's state, the next step and its time",
        positionals: [PositionalSpec(name: "DEVICE|ADDRESS")],
        options: [ConfigurationFile.option, .flag("json", "print one JSON object")],
        details: """
            Prints the events of the device, of Bluetooth and of outputs from history, oldest first; repeated events are
            one line with a count. If the daemon runs, it also prints the last advertisement, the state of the link, the
            next step and its time, and advice, also about outputs that fail or are behind. Without a daemon it prints only
            the events.
            """,
        json: """
            {"device", "address", "headline", "model", "state", "since", "next_retry", "next", "advice": [text],
            "story": [{"time", "first", "count", "text"}]}

            Times are RFC 3339 in UTC; "model", "state", "since" and "next_retry" are null if unknown. New keys may be
            added; the texts are for people and may change.
            """,
        exits: [
            .data: "the configuration has no such device", .unavailable: "the daemon runs, but may not be asked",
        ],
        examples: ["gattherd why strap"],
        run: { (arguments) throws(CommandFailure) in try WhyCommand(arguments).run() }
    )
}

/// Explains the state of a device by its past.
struct WhyCommand {
    private static let limit = 500
    /// The maximum number of events about outputs, so that events of the device have room.
    private static let outputLimit = 5

    private struct Device {
        let name: String
        let address: String
    }

    private let configuration: Configuration
    private let errors: [ConfigError]
    private let name: String
    private let isJSON: Bool
    private let file: ConfigurationFile

    init(_ arguments: Arguments) {
        file = ConfigurationFile(arguments)
        let (configuration, errors) = file.parsedLeniently()
        self.configuration = configuration.recallingEnrolled()
        self.errors = errors
        isJSON = arguments.has("json")
        name = arguments.positional(0) ?? ""
    }

    func run() throws(CommandFailure) {
        let client = DaemonClient(configuration, errors: errors)
        let status = try status(client)
        let device = try device(status)
        if status != nil { client.warn() }
        let sources = DeviceExplanation.Sources(
            device: device.name,
            address: device.address,
            status: status,
            events: events(of: device.name),
            connectTimeout: configuration.bluetooth.connectTimeout,
            configuration: file.path,
            configurationError: errors.first?.description.split(separator: "\n").first.map { String($0) }
        )
        let story = DeviceExplanation(sources, now: SystemClock.now)
        let json = { String(decoding: JSONWriter.bytes { story.writeJSON(to: &$0) }, as: UTF8.self) }
        Terminal.say(isJSON ? json() : story.text)
        if status == nil, !errors.isEmpty { throw CommandFailure(.configuration, nil) }
    }

    /// Returns the device of the configuration or, if that has errors, of the daemon.
    private func device(_ status: DaemonStatus?) throws(CommandFailure) -> Device {
        let configured = configuration.devices.map { device in
            Device(name: device.name.value, address: device.address.value.description)
        }
        let running = (status?.devices ?? []).map { Device(name: $0.device, address: $0.address) }
        let all = errors.isEmpty ? configured : running + configured
        let address = BluetoothAddress(anyNotation: name)?.description
        let named = all.first { $0.name == name } ?? all.first { $0.address == address }
        if let named { return named }
        guard errors.isEmpty else { throw CommandFailure(.configuration, ConfigErrors(errors).description) }
        let names = all.map(\.name)
        let question = Spelling.nearest(to: name, among: names).map { "did you mean '\($0)'? " } ?? ""
        let list = names.joined(separator: ", ")
        let known = names.isEmpty ? "it has none: \(DisplayWords.firstStep)" : "it has: \(list)"
        throw CommandFailure(.data, "gattherd: the configuration has no device '\(name)'; \(question)\(known)")
    }

    /// The status of the daemon; `nil` if none runs.
    private func status(_ client: DaemonClient) throws(CommandFailure) -> DaemonStatus? {
        do throws(ControlSocketError) {
            guard case .status(let status) = try ControlClient.ask(.status, at: client.path) else {
                return nil
            }
            return status
        } catch {
            guard error.isNobodyThere else { throw client.failure(error) }
            return nil
        }
    }

    /// Returns the events of the device, and the gateway's about Bluetooth and outputs; empty without a history file.
    private func events(of device: String) -> [LifecycleEvent] {
        let path = configuration.history.path.value
        guard unsafe access(path, F_OK) == 0 else { return [] }
        do throws(StoreFault) {
            let reader = try HistoryReader(path: path)
            let own = try reader.events(device: device, newest: Self.limit)
            let kinds = ["adapter", "bluetoothd", "daemon", "recovery"]
            let others = try reader.gatewayEvents(kinds: kinds, newest: Self.limit)
            let outputs = try reader.gatewayEvents(kinds: ["output"], newest: Self.outputLimit)
            return (own + others + outputs).sorted { $0.time < $1.time }
        } catch {
            Terminal.printError("gattherd: \(error.detail)")
            return []
        }
    }
}
