import GattherdCapture
import GattherdConfig
import GattherdGATT
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let profileDecode = CommandSpec(
        name: "profile decode",
        summary: "decode payloads or whole advertisements",
        positionals: [
            PositionalSpec(name: "PROFILE", isOptional: true), PositionalSpec(name: "CHARACTERISTIC", isOptional: true),
            PositionalSpec(name: "HEX", isOptional: true),
        ],
        options: profileSources + [
            .value("advertisement", "HEX", "a whole advertisement: its AD structures, or an HCI event"),
            .value("file", "FILE", "payloads, one a line, or whole advertisements; - for standard input"),
            .value("name", "NAME", "the device's name, for an advertisement without it"),
            .flag("json", "print the metrics as a JSON object"),
            .flag("explain", "show the bytes of each value; for native profiles, found by trials"),
            .value("key", "FILE", "the file with the device's bind key"),
            .value("address", "ADDRESS", "the device's address, which is part of the encryption"),
        ],
        details: """
            CHARACTERISTIC is a UUID, a stream or, for advertisements, a company's number. HEX may be several payloads of one
            connection, separated by commas: the last one is printed, with the state of those before it. For an advertisement,
            HEX is the data after the UUID or the company. With --file instead of HEX, each line is a payload of one connection.
            Messages over several payloads are put together, and each message is a line of output.

            --advertisement shows the AD structures, the recognised model and the readings. Advertisements of one device with
            commas between them, such as one and its scan response, count together. PROFILE may be left out: then that of the
            recognised model is used. --file without CHARACTERISTIC decodes a file of advertisements as 'gattherd replay' does.
            \(profileWhence)
            """,
        json: "One object: a member for each metric. With --file: one object a line.",
        exits: [.data: "a payload is rejected, or nothing decodes it", .noInput: "FILE cannot be read"],
        examples: [
            "gattherd profile decode heart-rate 2a37 '16 48 00 04'",
            "gattherd profile decode cycling-power 2a63 '30 00 64 00' --explain",
            "gattherd profile decode bthome fcd2 '41 A47266C95F73 00112233 78237214' --key door.key "
                + "--address 54:48:E6:8F:80:A5",
            "gattherd profile decode --advertisement '02 01 06 08 16 D2 FC 40 00 01 01 5D'",
            "gattherd profile decode heart-rate 2a37 --file payloads.txt --json",
        ],
        run: { (arguments) throws(CommandFailure) in
            if arguments.value("advertisement") != nil {
                try AdvertisementDecodeCommand(arguments).run()
            } else if arguments.value("file") != nil, arguments.positional(1) == nil {
                try AdvertisementFileCommand(arguments).run()
            } else {
                try ProfileDecodeCommand(arguments).run()
            }
        }
    )
}

/// Decodes payloads from the command line.
struct ProfileDecodeCommand {
    private let profile: any Profile
    /// The name of the stream, its characteristic or its company.
    private let source: String
    /// The payloads of the command line, or the file with one a line.
    private let input: String
    /// The address of the advertiser, if given.
    private let sender: Sender?
    private let arguments: Arguments

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        guard let source = arguments.positional(1), let input = arguments.positional(2) ?? arguments.value("file")
        else {
            throw arguments.misuse("write PROFILE, CHARACTERISTIC and HEX, or --file, or --advertisement")
        }
        (self.source, self.input) = (source, input)
        if arguments.positional(2) != nil, arguments.value("file") != nil {
            throw arguments.misuse("--file has the payloads; leave out '\(input)'")
        }
        profile = try ProfileCommands(arguments).profile(0)
        sender = try Self.sender(arguments, profile)
    }

    func run() throws(CommandFailure) {
        guard arguments.value("file") == nil else { return try decodeLines() }
        let payloads = Self.payloads(input)
        let position = try position(for: payloads?.last ?? [])
        guard let payloads else {
            throw CommandFailure(.usage, "gattherd: '\(input)' is not hexadecimal; write '16 48 00 04', for example")
        }
        let decoding = PayloadDecoding(profile: profile, position: position, sender: sender)
        if arguments.has("explain") {
            guard !arguments.has("json") else { throw arguments.misuse("--explain is for people; leave out --json") }
            return try decoding.explain(payloads)
        }
        try decoding.say(payloads, isJSON: arguments.has("json"))
    }

    /// Returns the payloads of an argument, which has commas between them; `nil` if they are not hexadecimal.
    ///
    /// Commas in an array of C, such as `0x16, 0x48`, separate bytes.
    static func payloads(_ text: String) -> [[UInt8]]? {
        let words = text.split(separator: ",", omittingEmptySubsequences: false)
        let payloads = words.compactMap { AdvertisementTextReader.octets($0) }
        guard payloads.count == words.count else { return nil }
        let isArray = text.contains("0x") && payloads.allSatisfy { $0.count <= 1 }
        return isArray ? [payloads.flatMap(\.self)] : payloads
    }

    /// Decodes the payloads of one connection or one sender, one a line.
    private func decodeLines() throws(CommandFailure) {
        guard !arguments.has("explain") else {
            throw arguments.misuse("--explain is for one payload; leave out --file")
        }
        let lines = try LineSource(path: input)
        let decoder = sender.map { profile.makeDecoder(for: $0) } ?? profile.makeDecoder()
        var decoding = LineDecoding(profile, decoder, isJSON: arguments.has("json"))
        while let line = try lines.next() {
            let text = String(decoding: line, as: UTF8.self).prefix { $0 != "#" }
            guard text.contains(where: { !$0.isWhitespace }) else { continue }
            guard let payload = AdvertisementTextReader.octets(text) else {
                throw lines.failure("'\(Terminal.harmless(String(text.prefix(40))))' is not hexadecimal")
            }
            decoding.decode(payload, of: try position(for: payload))
        }
        decoding.finish()
        if decoding.rejected > 0 { throw CommandFailure(.data, "gattherd: \(decoding.rejected) rejected") }
    }

    /// Returns the index of the stream that is named directly, or by its source; one source may have several frames.
    private func position(for payload: [UInt8]) throws(CommandFailure) -> Int {
        guard let position = ProfileTools.characteristic(source, of: profile) else {
            let known = profile.streams.map { "\($0.source) (\($0.name))" }.joined(separator: ", ")
            throw CommandFailure(.data, "gattherd: \(profile.name) does not decode '\(source)'; it decodes \(known)")
        }
        guard profile.isForAdvertisements, profile.streams[position].name != source else { return position }
        return profile.frame(for: payload, like: position)
    }

    private static func sender(_ arguments: Arguments, _ profile: any Profile) throws(CommandFailure) -> Sender? {
        guard arguments.value("key") != nil || arguments.value("address") != nil else { return nil }
        guard profile.isForAdvertisements else {
            throw arguments.misuse("--key and --address are for profiles of advertisements; leave them out")
        }
        let options = try SenderOptions(arguments, for: profile)
        guard let address = options.address else {
            throw arguments.misuse("--address is the device's address, such as C0:FF:EE:00:00:01; a key needs it")
        }
        return Sender(address: address, key: options.key)
    }
}

/// The decoding of payloads of one stream; the last result is printed.
struct PayloadDecoding {
    let profile: any Profile
    /// The index of the stream in the profile.
    let position: Int
    let sender: Sender?

    func say(_ payloads: [[UInt8]], isJSON: Bool) throws(CommandFailure) {
        let stream = profile.streams[position]
        let beginning = profile.isForAdvertisements ? profile.advertisements[position].beginning : nil
        if let beginning, profile.advertisements[position].before.isEmpty, let last = payloads.last,
            !beginning.fits(last)
        {
            throw CommandFailure(.data, "skipped: a frame of \(stream.name) begins with \(beginning)")
        }
        let samples: [NamedSample]
        do throws(PayloadError) {
            samples = try ProfileTools.decode(payloads, characteristic: position, of: profile, from: sender)
        } catch {
            throw CommandFailure(.data, "rejected: \(error.description)")
        }
        if isJSON {
            Terminal.say(SampleText.json(samples, stream.metrics))
        } else {
            Terminal.say(samples.isEmpty ? "nothing new" : SampleText.table(samples))
        }
    }

    func explain(_ payloads: [[UInt8]]) throws(CommandFailure) {
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
