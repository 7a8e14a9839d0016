import GattherdGATT
import GattherdModel
import GattherdProfiles

/// Decodes what a person has seen on the air.
struct ProfileDecodeCommand {
    private let profile: any Profile
    private let characteristic: Int
    private let payloads: [[UInt8]]
    private let arguments: Arguments

    init(_ arguments: Arguments) throws(Failure) {
        self.arguments = arguments
        profile = try ProfileCommands(arguments).profile(0)
        characteristic = try Self.characteristic(arguments.positional(1) ?? "", of: profile)
        let words = (arguments.positional(2) ?? "").split(separator: ",", omittingEmptySubsequences: false)
        let read = words.compactMap { Hexadecimal.octets($0) }
        guard read.count == words.count else {
            throw Failure(
                .usage,
                "gattherd: '\(arguments.positional(2) ?? "")' is not hexadecimal; write '16 48 00 04'"
            )
        }
        payloads = read
    }

    func run() throws(Failure) {
        guard !arguments.has("explain") else { return try explain() }
        let samples: [NamedSample]
        do throws(PayloadError) {
            samples = try ProfileTools.decode(payloads, characteristic: characteristic, of: profile)
        } catch {
            throw Failure(.data, "rejected: \(error.description)")
        }
        Console.say(arguments.has("json") ? SampleText.json(samples, metrics) : SampleText.table(samples))
    }

    private var metrics: [MetricDescriptor] { profile.characteristics[characteristic].metrics }

    /// The position of a characteristic that is named by its UUID or its stream.
    private static func characteristic(_ text: String, of profile: any Profile) throws(Failure) -> Int {
        if let index = ProfileTools.characteristic(text, of: profile) { return index }
        let known = profile.characteristics.map { "\($0.uuid) (\($0.stream))" }.joined(separator: ", ")
        throw Failure(.data, "gattherd: \(profile.name) does not decode '\(text)'; it decodes \(known)")
    }

    private func explain() throws(Failure) {
        guard !arguments.has("json") else { throw arguments.misuse("--explain is for people; leave out --json") }
        guard
            let explanation = ProfileTools.explain(payloads, characteristic: characteristic, of: profile)
        else {
            throw Failure(.data, "gattherd: \(profile.name) is native: only its code knows how it decodes")
        }
        Console.say(ExplanationText(explanation, profile, profile.characteristics[characteristic]).text)
        if let rejection = explanation.rejection { throw Failure(.data, "rejected: \(rejection.description)") }
    }
}

/// Decoded samples as text.
enum SampleText {
    /// One line for each.
    static func table(_ samples: [NamedSample]) -> String {
        let width = samples.map(\.metric.name.count).max() ?? 0
        return samples.map { "\($0.metric.name.padded(to: width))  \(words($0))" }.joined(separator: "\n")
    }

    /// The value as JSON, and its unit.
    static func words(_ sample: NamedSample) -> String {
        let value = String(decoding: JSONWriter.octets { $0.value(sample.value) }, as: UTF8.self)
        return value + (sample.metric.unit.map { " " + $0 } ?? "")
    }

    /// One object, in the order of `metrics`.
    static func json(_ samples: [NamedSample], _ metrics: [MetricDescriptor]) -> String {
        let octets = JSONWriter.octets { writer in
            writer.beginObject()
            write(samples, metrics, to: &writer)
            writer.endObject()
        }
        return String(decoding: octets, as: UTF8.self)
    }

    /// The members of such an object.
    static func write(_ samples: [NamedSample], _ metrics: [MetricDescriptor], to writer: inout JSONWriter) {
        for metric in metrics {
            let values = samples.filter { $0.metric.name == metric.name }.map(\.value)
            guard let first = values.first else { continue }
            writer.key(metric.name)
            guard metric.isRepeated else {
                writer.value(first)
                continue
            }
            writer.beginArray()
            for value in values { writer.value(value) }
            writer.endArray()
        }
    }
}
