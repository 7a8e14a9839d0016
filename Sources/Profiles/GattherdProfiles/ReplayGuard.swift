import GattherdGATT
import GattherdModel

/// The counter of one stream of a device's advertisements.
///
/// Payloads with the number of the one before are repetitions. With a key, payloads with a lower number are replays.
struct ReplayGuard {
    private let isKeyed: Bool
    /// The name of the counter: it belongs to the sender, the stream, the key and the key's comment.
    private let name: String?
    /// The counter of the newest authentic payload.
    private var newest: UInt32?

    /// - Parameters:
    ///   - sender: The advertising device.
    ///   - stream: The stream of the readings.
    init(_ sender: Sender?, stream: String) {
        isKeyed = sender?.key != nil
        name = sender.flatMap { sender in
            sender.key?.fingerprint.map { "\(sender.address) \(stream) \($0)" }
        }
    }

    /// The counter to store; `nil` without a key.
    var mark: ReplayCounter? {
        guard let name, let newest else { return nil }
        return ReplayCounter(sender: name, counter: newest)
    }

    mutating func resume(from marks: [String: UInt32]) {
        guard let name, let mark = marks[name] else { return }
        newest = max(newest ?? mark, mark)
    }

    /// Returns false for a repetition.
    ///
    /// - Throws: ``PayloadError`` for a replay.
    mutating func admit(_ number: UInt32) throws(PayloadError) -> Bool {
        if isKeyed, let newest, number < newest {
            throw .invalid(
                reason: "it is a replay: its counter \(number) is below \(newest); "
                    + "if a battery change reset it, write the date into the second line of 'bind_key_file' and reload"
            )
        }
        defer { newest = number }
        return number != newest
    }
}
