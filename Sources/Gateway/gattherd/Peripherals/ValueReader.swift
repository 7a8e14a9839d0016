import GattherdBluetooth
import GattherdCapture
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// Decodes the values of one connected peripheral by the profiles that a daemon would use.
struct ValueReader {
    private var decoder: ReplayDecoder
    let profiles: [any Profile]

    init(_ profiles: [any Profile], services: [Service]) {
        self.profiles = profiles.filter { !$0.isOptIn }.serving(Set(services.map(\.uuid)))
        decoder = ReplayDecoder(self.profiles)
    }

    /// Returns the decoded metrics as text; `nil` if no profile decodes the characteristic.
    mutating func words(_ bytes: [UInt8], of characteristic: Characteristic) -> String? {
        switch decode(bytes, characteristic).outcome {
        case .decoded(_, _, let samples):
            samples.map { "\($0.metric.name) \(SampleText.words($0))" }.joined(separator: ", ")
        case .rejected(_, let profile, let reason): "rejected by profile \(profile): \(reason)"
        case .unknown: nil
        }
    }

    /// Returns a line of `replay --json`.
    mutating func json(_ bytes: [UInt8], of characteristic: Characteristic, _ source: ReadingSource) -> String {
        let (value, outcome) = decode(bytes, characteristic, source)
        return ReplayText.json(value, outcome)
    }

    private mutating func decode(
        _ bytes: [UInt8],
        _ characteristic: Characteristic,
        _ source: ReadingSource = .read
    ) -> (value: CaptureValue, outcome: ReplayDecoder.Outcome) {
        let value = CaptureValue(
            time: SystemClock.now,
            service: characteristic.service,
            characteristic: characteristic.uuid,
            source: source,
            octets: bytes
        )
        // A part of a message has no outcome yet.
        return (value, decoder.decode(value).last ?? .unknown)
    }
}

/// Bytes as text for people.
enum ByteText {
    /// The fewest characters of text; shorter values are more likely to be numbers.
    private static let shortestText = 3

    /// Returns hexadecimal, followed by the text if the bytes are text.
    static func words(_ bytes: [UInt8]) -> String {
        guard !bytes.isEmpty else { return "empty" }
        let hex = Hexadecimal.text(bytes.span)
        let text = String(validating: bytes, as: UTF8.self).map { $0.trimmingNulls }
        guard let text, text.count >= shortestText, Terminal.harmless(text) == text else { return hex }
        return "\(hex) \"\(text)\""
    }
}

extension String {
    fileprivate var trimmingNulls: String { String(reversed().drop { $0 == "\0" }.reversed()) }
}
