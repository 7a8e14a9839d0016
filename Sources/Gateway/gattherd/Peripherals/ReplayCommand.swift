import GattherdCapture
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let replay = CommandSpec(
        name: "replay",
        summary: "decode a file of 'gattherd capture'",
        positionals: [PositionalSpec(name: "FILE")],
        options: profileSources + [
            .value("profile", "NAME", "by this profile (default: each characteristic by the first that fits)"),
            .flag("json", "print readings as JSON, one to a line"),
        ],
        details: """
            FILE may be - for standard input. Values without a profile are shown as bytes.
            \(profileWhence)
            """,
        json: """
            {"ts", "source", "profile", "stream", METRIC: …}, one object a line

            "ts" is RFC 3339 in UTC, "source" is read, notify or indicate, and each metric of the stream has its name. A rejected
            payload has "rejected", the reason, and "hex" instead of metrics. A payload without a profile has
            "characteristic", a UUID, and "hex".
            """,
        exits: [.data: "a payload is rejected, or a line is not from a capture", .noInput: "FILE cannot be read"],
        examples: ["gattherd replay strap.jsonl", "gattherd replay probe.jsonl --path soil-probe.yaml --json"],
        run: { (arguments) throws(CommandFailure) in try ReplayCommand(arguments).run() }
    )
}

/// Decodes the lines of a capture.
struct ReplayCommand {
    private let path: String
    private let profiles: [any Profile]
    /// True if the profile was named on the command line.
    private let isChosen: Bool
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(CommandFailure) {
        path = arguments.positional(0) ?? "-"
        isJSON = arguments.has("json")
        isChosen = arguments.value("profile") != nil
        let commands = try ProfileCommands(arguments)
        profiles =
            try arguments.value("profile").map { (name) throws(CommandFailure) in [try commands.profile(named: name)] }
            ?? commands.registry.profiles.filter { !$0.isOptIn }
        if isChosen, let profile = profiles.first, profile.isForAdvertisements {
            throw CommandFailure(
                .data,
                "gattherd: \(profile.name) is for advertisements, and a capture is of a connection"
            )
        }
        for refusal in arguments.value("path") == nil ? [] : commands.registry.refusals {
            Terminal.printError("\(refusal)")
        }
    }

    func run() throws(CommandFailure) {
        let source = try LineSource(path: path)
        var decoder: ReplayDecoder?
        var rejected = 0
        while let line = try source.next() {
            guard !line.isEmpty else { continue }
            switch try parsed(line, source) {
            case .header(let header):
                let services = Set(header.services.map(\.uuid))
                decoder = ReplayDecoder(isChosen ? profiles : profiles.serving(services))
            case .value(let value):
                guard let outcome = decoder?.decode(value) else {
                    throw source.failure("the header line must come first")
                }
                if case .rejected = outcome { rejected += 1 }
                Terminal.say(isJSON ? ReplayText.json(value, outcome) : ReplayText.line(value, outcome))
            }
        }
        if rejected > 0 { throw CommandFailure(.data, "gattherd: \(rejected) rejected") }
    }

    private func parsed(_ line: ArraySlice<UInt8>, _ source: LineSource) throws(CommandFailure) -> CaptureLine {
        do throws(CaptureError) {
            return try CaptureLine(line, source.number, file: source.name)
        } catch {
            throw CommandFailure(.data, error.description)
        }
    }
}

/// The decoders of one connection.
struct ReplayDecoder {
    enum Outcome {
        case decoded(CharacteristicDescriptor, profile: String, [NamedSample])
        case rejected(CharacteristicDescriptor, profile: String, reason: String)
        /// No profile decodes the characteristic.
        case unknown
    }

    private let profiles: [any Profile]
    private var decoders: [String: any PayloadDecoder] = [:]

    init(_ profiles: [any Profile]) {
        self.profiles = profiles
    }

    mutating func decode(_ value: CaptureValue) -> Outcome {
        for profile in profiles {
            guard let index = profile.characteristics.firstIndex(where: { $0.fits(value, of: profile) }) else {
                continue
            }
            let decoder = decoders[profile.name] ?? profile.makeDecoder()
            decoders[profile.name] = decoder
            let descriptor = profile.characteristics[index]
            var samples: [Sample] = []
            do throws(PayloadError) {
                try decoder.decode(value.octets.span, characteristic: index, into: &samples)
            } catch {
                return .rejected(descriptor, profile: profile.name, reason: error.description)
            }
            let named = samples.map { NamedSample(metric: descriptor.metrics[$0.metric], value: $0.value) }
            return .decoded(descriptor, profile: profile.name, named)
        }
        return .unknown
    }
}

extension [any Profile] {
    /// Returns the profiles that a daemon would use: those that name a service first.
    func serving(_ services: Set<BluetoothUUID>) -> [any Profile] {
        filter { !services.isDisjoint(with: $0.services) } + filter(\.services.isEmpty)
    }
}

extension CharacteristicDescriptor {
    fileprivate func fits(_ value: CaptureValue, of profile: any Profile) -> Bool {
        guard uuid == value.characteristic else { return false }
        if let service { return service == value.service }
        return profile.services.isEmpty || profile.services.contains(value.service)
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
