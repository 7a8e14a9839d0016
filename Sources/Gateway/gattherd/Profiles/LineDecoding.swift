import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// The decoding of the payloads of one connection or one sender, with a printed line for each payload.
///
/// Of a stream with messages, each message is a line.
struct LineDecoding {
    /// The time of all payloads: a file has none.
    private static let time = Timestamp(microseconds: 0)

    private let profile: any Profile
    private let decoder: any PayloadDecoder
    private let isJSON: Bool
    /// The unfinished message of the stream, and the stream's index.
    private var open: (assembly: MessageAssembly, position: Int)?
    /// The number of payloads and messages that do not decode.
    private(set) var rejected = 0

    init(_ profile: any Profile, _ decoder: any PayloadDecoder, isJSON: Bool) {
        self.profile = profile
        self.decoder = decoder
        self.isJSON = isJSON
    }

    /// Decodes a payload of the stream at `position` and prints the result.
    mutating func decode(_ payload: [UInt8], of position: Int) {
        let descriptors = profile.characteristics
        guard let rule = descriptors.indices.contains(position) ? descriptors[position].messages : nil else {
            _ = say(payload, of: position)
            return
        }
        var assembly = open?.assembly ?? MessageAssembly(rule)
        assembly.receive(payload.span, at: Self.time) { message, discarded in
            say(message, discarded, of: position)
        }
        open = (assembly, position)
    }

    /// Rejects a message without an end.
    mutating func finish() {
        guard let position = open?.position, var assembly = open?.assembly else { return }
        open = nil
        assembly.finish { message, discarded in say(message, discarded, of: position) }
    }

    /// Prints a message, or the reason of discarded bytes; returns true if the message decodes.
    private mutating func say(_ message: Span<UInt8>, _ discarded: PayloadError?, of position: Int) -> Bool {
        guard let discarded else { return say(message.indices.map { message[$0] }, of: position) }
        say(discarded)
        return false
    }

    private mutating func say(_ payload: [UInt8], of position: Int) -> Bool {
        var samples: [Sample] = []
        do throws(PayloadError) {
            try decoder.decode(payload.span, characteristic: position, into: &samples)
            try say(samples, of: position)
            return true
        } catch {
            say(error)
            return false
        }
    }

    private func say(_ samples: [Sample], of position: Int) throws(PayloadError) {
        let metrics = profile.streams[position].metrics
        let named = try [NamedSample](samples, of: metrics)
        guard !isJSON else { return Terminal.say(SampleText.json(named, metrics)) }
        let words = named.map { "\($0.metric.name) \(SampleText.words($0))" }.joined(separator: ", ")
        Terminal.say(named.isEmpty ? "nothing new" : words)
    }

    private mutating func say(_ rejection: PayloadError) {
        rejected += 1
        guard isJSON else { return Terminal.say("rejected: \(Terminal.harmless(rejection.description))") }
        Terminal.say(
            JSONWriter.text { writer in
                writer.beginObject()
                writer.member("rejected", rejection.description)
                writer.endObject()
            }
        )
    }
}
