import GattherdConfig
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// Decodes a payload from the command line.
struct ProfileDecodeCommand {
    private let profile: any Profile
    /// The index of the stream in the profile.
    private let position: Int
    private let payloads: [[UInt8]]
    /// The address of the advertiser, if given.
    private let sender: Sender?
    private let arguments: Arguments

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        profile = try ProfileCommands(arguments).profile(0)
        let words = (arguments.positional(2) ?? "").split(separator: ",", omittingEmptySubsequences: false)
        payloads = words.compactMap { Hexadecimal.octets($0) }
        position = try Self.position(arguments.positional(1) ?? "", of: profile, payloads.last ?? [])
        guard payloads.count == words.count else {
            throw CommandFailure(
                .usage,
                "gattherd: '\(arguments.positional(2) ?? "")' is not hexadecimal; write '16 48 00 04'"
            )
        }
        sender = try Self.sender(arguments, profile)
    }

    func run() throws(CommandFailure) {
        if let beginning = stream.beginning, let last = payloads.last, !beginning.fits(last) {
            throw CommandFailure(.data, "skipped: a frame of \(stream.name) begins with \(beginning)")
        }
        guard !arguments.has("explain") else { return try explain() }
        let samples: [NamedSample]
        do throws(PayloadError) {
            samples = try ProfileTools.decode(payloads, characteristic: position, of: profile, from: sender)
        } catch {
            throw CommandFailure(.data, "rejected: \(error.description)")
        }
        if arguments.has("json") {
            Terminal.say(SampleText.json(samples, stream.metrics))
        } else {
            Terminal.say(samples.isEmpty ? "nothing new" : SampleText.table(samples))
        }
    }

    private var stream: (name: String, metrics: [MetricDescriptor], beginning: BytePattern?) {
        let stream = profile.streams[position]
        let frame = profile.isForAdvertisements ? profile.advertisements[position] : nil
        return (stream.name, stream.metrics, frame?.beginning)
    }

    /// Returns the index of the stream that is named directly, or by its source; one source may have several frames.
    private static func position(
        _ text: String,
        of profile: any Profile,
        _ payload: [UInt8]
    ) throws(CommandFailure) -> Int {
        guard let position = ProfileTools.characteristic(text, of: profile) else {
            let known = profile.streams.map { "\($0.source) (\($0.name))" }.joined(separator: ", ")
            throw CommandFailure(.data, "gattherd: \(profile.name) does not decode '\(text)'; it decodes \(known)")
        }
        guard profile.isForAdvertisements, profile.streams[position].name != text else { return position }
        return profile.frame(for: payload, like: position)
    }

    private static func sender(_ arguments: Arguments, _ profile: any Profile) throws(CommandFailure) -> Sender? {
        guard arguments.value("key") != nil || arguments.value("address") != nil else { return nil }
        guard profile.isForAdvertisements else {
            throw arguments.misuse("--key and --address are for profiles of advertisements; leave them out")
        }
        guard let address = arguments.value("address").flatMap({ BluetoothAddress($0) }) else {
            throw arguments.misuse("--address is the device's address, such as C0:FF:EE:00:00:01; a key needs it")
        }
        guard let file = arguments.value("key").map({ BindKeyFile(Located($0)) }) else {
            return Sender(address: address)
        }
        if let finding = file.finding { throw CommandFailure(.data, finding.description) }
        return Sender(address: address, key: file.key)
    }

    private func explain() throws(CommandFailure) {
        guard !arguments.has("json") else { throw arguments.misuse("--explain is for people; leave out --json") }
        let rejection: PayloadError?
        if let explanation = ProfileTools.explain(payloads, characteristic: position, of: profile, from: sender) {
            Terminal.say(ExplanationText(explanation, profile, position).text)
            rejection = explanation.rejection
        } else {
            let dependence = SampleDependence(payloads, stream: position, of: profile, from: sender)
            Terminal.say(ExplanationText(dependence, profile, position).text)
            rejection = dependence.rejection
        }
        if let rejection { throw CommandFailure(.data, "rejected: \(rejection.description)") }
    }
}

/// Decoded samples as text.
enum SampleText {
    /// Returns one line for each sample.
    static func table(_ samples: [NamedSample]) -> String {
        let width = samples.map(\.metric.name.count).max() ?? 0
        return samples.map { "\($0.metric.name.padded(to: width))  \(words($0))" }.joined(separator: "\n")
    }

    /// Returns the value as JSON, and its unit.
    static func words(_ sample: NamedSample) -> String {
        let value = String(decoding: JSONWriter.bytes { $0.value(sample.value) }, as: UTF8.self)
        return Terminal.harmless(value) + (sample.metric.unit.map { " " + $0 } ?? "")
    }

    /// Returns one object, in the order of `metrics`.
    static func json(_ samples: [NamedSample], _ metrics: [MetricDescriptor]) -> String {
        JSONWriter.text { writer in
            writer.beginObject()
            write(samples, metrics, to: &writer)
            writer.endObject()
        }
    }

    /// Writes the members of a JSON object for the samples.
    static func write(_ samples: [NamedSample], _ metrics: [MetricDescriptor], to writer: inout JSONWriter) {
        for metric in metrics {
            let values = samples.filter { $0.metric.name == metric.name }.map(\.value)
            guard let first = values.first else { continue }
            writer.key(metric.name)
            guard metric.isRepeated || values.count > 1 else {
                writer.value(first)
                continue
            }
            writer.array(values) { $0.value($1) }
        }
    }
}
