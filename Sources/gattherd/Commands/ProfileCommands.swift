import GattherdConfig
import GattherdGATT
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    private static let sources = [
        OptionSpec.value("config", "FILE", "take the profiles of this configuration"),
        .value("path", "PATH", "take the profiles of this folder or file"),
    ]
    private static let whence =
        "Without an option: the profiles of \(ConfigurationFile.standardPath), else the installed ones."

    static let profileList = CommandSpec(
        name: "profile list",
        summary: "list the profiles, and those that were refused",
        options: sources,
        details: whence,
        run: { (arguments) throws(Failure) in try ProfileCommands(arguments).list() }
    )

    static let profileShow = CommandSpec(
        name: "profile show",
        summary: "show a profile's streams, metrics, units and controls",
        positionals: [PositionalSpec(name: "PROFILE")],
        options: sources,
        details: whence,
        run: { (arguments) throws(Failure) in try ProfileCommands(arguments).show(arguments.positional(0) ?? "") }
    )

    static let profileDecode = CommandSpec(
        name: "profile decode",
        summary: "decode a payload",
        positionals: [
            PositionalSpec(name: "PROFILE"), PositionalSpec(name: "CHARACTERISTIC"), PositionalSpec(name: "HEX"),
        ],
        options: sources + [.flag("json", "print the metrics as a JSON object")],
        details: "Exit code 65 when the payload is rejected.\n\(whence)",
        examples: ["gattherd profile decode heart-rate 2a37 '16 48 00 04'"],
        run: { (arguments) throws(Failure) in try ProfileCommands(arguments).decode(arguments) }
    )
}

/// What the command line does with profiles.
struct ProfileCommands {
    private let registry: ProfileRegistry

    init(_ arguments: Arguments) throws(Failure) {
        if let path = arguments.value("path") {
            do throws(ProfilePathError) {
                registry = try ProfileRegistry.load(paths: [path])
            } catch {
                throw Failure(.configuration, "gattherd: \(error.description)")
            }
        } else {
            registry = try Self.configured(arguments.value("config"))
        }
    }

    private static func configured(_ path: String?) throws(Failure) -> ProfileRegistry {
        guard path != nil || ConfigurationFile.isStandardThere else { return InstalledProfiles.load() }
        do throws(ConfigErrors) {
            return try ConfigurationFile(path).parsed().configuration.loadProfiles()
        } catch {
            throw Failure(.configuration, error.description)
        }
    }

    func list() throws(Failure) {
        let rows = registry.profiles.map { profile in
            [
                profile.name, profile.title,
                profile.services.isEmpty ? "any" : profile.services.map(\.description).joined(separator: " "),
                Self.few(profile.characteristics.map(\.stream)), profile.origin,
            ]
        }
        Console.say(Table(["PROFILE", "TITLE", "SERVICES", "STREAMS", "FROM"], rows).lines.joined(separator: "\n"))
        for refusal in registry.refusals { Console.complain("\(refusal.path): refused: \(refusal.advice)") }
    }

    /// So many names as a line has room for.
    private static func few(_ names: [String]) -> String {
        let shown = names.prefix(3).joined(separator: " ")
        return names.count > 3 ? "\(shown) and \(names.count - 3) more" : shown
    }

    func show(_ name: String) throws(Failure) {
        let profile = try find(name)
        var rows: [[String]] = []
        for characteristic in profile.characteristics {
            for metric in characteristic.metrics {
                let kind = metric.isRepeated ? "\(metric.kind.rawValue), repeated" : metric.kind.rawValue
                rows.append([
                    characteristic.stream, characteristic.uuid.description, characteristic.subscription.words,
                    metric.name, metric.unit ?? "-", kind,
                ])
            }
        }
        Console.say("\(profile.name): \(profile.title), from \(profile.origin)\n")
        let header = ["STREAM", "CHARACTERISTIC", "VALUES", "METRIC", "UNIT", "KIND"]
        Console.say(Table(header, rows).lines.joined(separator: "\n"))
        for control in profile.controls {
            Console.say("control \(control.name): \(control.kind.expectation), written to \(control.characteristic)")
        }
    }

    func decode(_ arguments: Arguments) throws(Failure) {
        let profile = try find(arguments.positional(0) ?? "")
        let characteristic = try find(arguments.positional(1) ?? "", in: profile)
        guard let payload = Hexadecimal.octets(arguments.positional(2) ?? "") else {
            throw Failure(
                .usage,
                "gattherd: '\(arguments.positional(2) ?? "")' is not hexadecimal; write '16 48 00 04'"
            )
        }
        var samples: [Sample] = []
        do throws(PayloadError) {
            try profile.makeSession().decode(payload.span, characteristic: characteristic, into: &samples)
        } catch {
            throw Failure(.data, "rejected: \(error.description)")
        }
        let metrics = profile.characteristics[characteristic].metrics
        Console.say(arguments.has("json") ? json(samples, metrics) : table(samples, metrics))
    }

    private func find(_ name: String) throws(Failure) -> any Profile {
        if let profile = registry[name] { return profile }
        let question = Spelling.nearest(to: name, among: registry.profiles.map(\.name)).map {
            "; did you mean '\($0)'?"
        }
        throw Failure(.data, "gattherd: there is no profile '\(name)'\(question ?? "; see gattherd profile list")")
    }

    /// The position of a characteristic that is named by its UUID or its stream.
    private func find(_ text: String, in profile: any Profile) throws(Failure) -> Int {
        let uuid = BluetoothUUID(text)
        if let index = profile.characteristics.firstIndex(where: { $0.uuid == uuid || $0.stream == text }) {
            return index
        }
        let known = profile.characteristics.map { "\($0.uuid) (\($0.stream))" }.joined(separator: ", ")
        throw Failure(.data, "gattherd: \(profile.name) does not decode '\(text)'; it decodes \(known)")
    }

    private func table(_ samples: [Sample], _ metrics: [MetricDescriptor]) -> String {
        let width = metrics.map(\.name.count).max() ?? 0
        return samples.map { sample in
            let metric = metrics[sample.metric]
            let value = String(decoding: JSONWriter.octets { $0.value(sample.value) }, as: UTF8.self)
            return "\(metric.name.padded(to: width))  \(value)\(metric.unit.map { " " + $0 } ?? "")"
        }.joined(separator: "\n")
    }

    private func json(_ samples: [Sample], _ metrics: [MetricDescriptor]) -> String {
        let octets = JSONWriter.octets { writer in
            writer.beginObject()
            for (index, metric) in metrics.enumerated() {
                let values = samples.filter { $0.metric == index }.map(\.value)
                guard let first = values.first else { continue }
                writer.key(metric.name)
                if metric.isRepeated {
                    writer.beginArray()
                    for value in values { writer.value(value) }
                    writer.endArray()
                } else {
                    writer.value(first)
                }
            }
            writer.endObject()
        }
        return String(decoding: octets, as: UTF8.self)
    }
}

extension SubscriptionMode {
    var words: String {
        switch self {
        case .none: "read once"
        case .notify: "notify"
        case .indicate: "indicate"
        case .poll(let period): "read every \(period)"
        }
    }
}
