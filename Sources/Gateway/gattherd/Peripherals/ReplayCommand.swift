import GattherdCapture
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let replay = CommandSpec(
        name: "replay",
        summary: "decode recorded values and advertisements",
        positionals: [PositionalSpec(name: "FILE")],
        options: profileSources + [
            .value("profile", "NAME", "by this profile (default: each characteristic by the first that fits)"),
            .value("address", "ADDRESS", "only the advertisements of this device; also that of lines without address"),
            .value("key", "FILE", "the file with the device's bind key, for advertisements"),
            .flag("json", "print readings as JSON, one to a line"),
        ],
        details: """
            FILE is - for standard input. \(CaptureFile.formats)

            Advertisements are decoded as the daemon does: by the profiles of the device in the configuration, else by those of
            the recognised model. Repetitions are left out. Values without a profile are shown as bytes.
            \(profileWhence)
            """,
        json: """
            {"ts", "source", "profile", "stream", METRIC: …}, one object a line

            "ts" is RFC 3339 in UTC, "source" is read, notify, indicate or advert, and each metric of the stream has its name.
            Advertisements also have "address", "rssi" and, if it is recognised, "model". A rejected payload has "rejected", the
            reason, and "hex" instead of metrics. A payload without a profile has "hex", and a value also "characteristic", a UUID.
            """,
        exits: [.data: "a payload is rejected, or a line is invalid", .noInput: "FILE cannot be read"],
        examples: [
            "gattherd replay strap.jsonl", "gattherd replay probe.jsonl --path soil-probe.yaml --json",
            "btmon | gattherd replay -", "gattherd replay btsnoop_hci.log --address C0:FF:EE:00:00:01",
        ],
        run: { (arguments) throws(CommandFailure) in try ReplayCommand(arguments).run() }
    )
}

/// Decodes a file of recorded values or advertisements.
struct ReplayCommand {
    private let path: String
    private let profiles: [any Profile]
    /// True if the profile was named on the command line.
    private let isChosen: Bool
    private let isJSON: Bool
    private let advertisements: AdvertisementPrinter

    init(_ arguments: Arguments) throws(CommandFailure) {
        path = arguments.positional(0) ?? "-"
        isJSON = arguments.has("json")
        let commands = try ProfileCommands(arguments)
        let chosen = try arguments.value("profile").map { (name) throws(CommandFailure) in
            try commands.profile(named: name)
        }
        isChosen = chosen != nil
        profiles = chosen.map { [$0] } ?? commands.registry.profiles.filter { !$0.isOptIn }
        advertisements = try AdvertisementPrinter(arguments, commands, chosen)
        commands.sayRefusals()
    }

    func run() throws(CommandFailure) {
        var decoder: ReplayDecoder?
        var rejected = 0
        try CaptureFile(path: path).forEach { (entry) throws(CommandFailure) in
            switch entry {
            case .header(let header):
                if isChosen, let profile = profiles.first, profile.isForAdvertisements {
                    throw CommandFailure(
                        .data,
                        "gattherd: \(profile.name) is for advertisements, and this capture is of a connection"
                    )
                }
                rejected += say(decoder?.finish() ?? [])
                let services = Set(header.services.map(\.uuid))
                decoder = ReplayDecoder(isChosen ? profiles : profiles.serving(services))
            case .value(let value): rejected += say((decoder?.decode(value) ?? []).map { (value, $0) })
            case .advertisement(let advertisement): advertisements.decode(advertisement)
            }
        }
        rejected += say(decoder?.finish() ?? [])
        advertisements.saySummary()
        rejected += advertisements.rejected
        if rejected > 0 { throw CommandFailure(.data, "gattherd: \(rejected) rejected") }
    }

    /// Prints outcomes; returns the number of rejects.
    private func say(_ outcomes: [(value: CaptureValue, outcome: ReplayDecoder.Outcome)]) -> Int {
        for (value, outcome) in outcomes {
            Terminal.say(isJSON ? ReplayText.json(value, outcome) : ReplayText.line(value, outcome))
        }
        return outcomes.count { if case .rejected = $0.outcome { true } else { false } }
    }
}

/// A replayed value as text or JSON.
enum ReplayText {
    static func line(_ value: CaptureValue, _ outcome: ReplayDecoder.Outcome) -> String {
        let time = value.time.rfc3339
        let hex = Hexadecimal.text(value.octets.span)
        switch outcome {
        case .decoded(let descriptor, _, let samples):
            let words = samples.map { "\($0.metric.name) \(SampleText.words($0))" }.joined(separator: ", ")
            return "\(time)  \(descriptor.stream)  \(words)"
        case .rejected(let descriptor, _, let reason):
            return "\(time)  \(descriptor.stream)  rejected: \(Terminal.harmless(reason)): \(hex)"
        case .unknown: return "\(time)  \(value.characteristic)  no profile: \(hex)"
        }
    }

    static func json(_ value: CaptureValue, _ outcome: ReplayDecoder.Outcome) -> String {
        JSONWriter.text { writer in
            writer.beginObject()
            writer.key("ts")
            writer.timestamp(value.time)
            writer.key("source")
            writer.string(value.source.rawValue)
            write(value, outcome, to: &writer)
            writer.endObject()
        }
    }

    private static func write(
        _ value: CaptureValue,
        _ outcome: ReplayDecoder.Outcome,
        to writer: inout JSONWriter
    ) {
        switch outcome {
        case .decoded(let descriptor, let profile, let samples):
            writer.member("profile", profile)
            writer.member("stream", descriptor.stream)
            SampleText.write(samples, descriptor.metrics, to: &writer)
            return
        case .rejected(let descriptor, let profile, let reason):
            writer.member("profile", profile)
            writer.member("stream", descriptor.stream)
            writer.member("rejected", reason)
        case .unknown:
            writer.member("characteristic", value.characteristic.description)
        }
        writer.member("hex", Hexadecimal.text(value.octets.span))
    }
}
