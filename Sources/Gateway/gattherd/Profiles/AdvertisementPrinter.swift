import GattherdCapture
import GattherdConfig
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// Decodes recorded advertisements, and prints their readings.
final class AdvertisementPrinter {
    private var replay: AdvertisementReplay
    /// The only device whose advertisements are decoded; `nil` for all.
    private let address: BluetoothAddress?
    private let isJSON: Bool
    private(set) var rejected = 0
    private var (total, readings, repeated, unknown) = (0, 0, 0, 0)
    /// The unknown advertisements that were printed last, by sender.
    private var printed: [BluetoothAddress?: [UInt8]] = [:]

    /// - Parameters:
    ///   - arguments: The arguments, with the options `address`, `key` and `json`.
    ///   - commands: The profiles, and the configuration with the devices.
    ///   - profile: The profile of all devices; `nil` for that of each.
    /// - Throws: ``CommandFailure`` for a wrong option.
    init(_ arguments: Arguments, _ commands: ProfileCommands, _ profile: (any Profile)?) throws(CommandFailure) {
        isJSON = arguments.has("json")
        let profile = profile.flatMap { $0.isForAdvertisements ? $0 : nil }
        let sender = try SenderOptions(arguments, for: profile)
        address = sender.address
        replay = AdvertisementReplay(
            commands.registry,
            commands.configuration,
            profile: profile,
            key: sender.key
        )
    }

    /// Decodes an advertisement and prints its readings.
    func decode(_ advertisement: CapturedAdvertisement) {
        var advertisement = advertisement
        if let address {
            guard advertisement.address ?? address == address else { return }
            advertisement.address = address
        }
        total += 1
        guard let outcomes = replay.decode(advertisement) else { return sayUnknown(advertisement) }
        for outcome in outcomes {
            switch outcome.result {
            case .decoded: readings += 1
            case .rejected: rejected += 1
            case .repeated:
                repeated += 1
                continue
            }
            Terminal.say(isJSON ? json(advertisement, outcome) : line(advertisement, outcome))
        }
    }

    /// Prints the number of advertisements and of their outcomes, if there was any.
    func saySummary() {
        guard total > 0 else { return }
        let counts = [
            ("reading", readings), ("rejected", rejected), ("repeated", repeated), ("without a profile", unknown),
        ]
        let words = counts.filter { $0.1 > 0 }.map { word, count in
            "\(count) \(word)\(word == "reading" && count != 1 ? "s" : "")"
        }
        Terminal.printError("\(total) advertisement\(total == 1 ? "" : "s"): \(words.joined(separator: ", "))")
    }

    private func sayUnknown(_ advertisement: CapturedAdvertisement) {
        unknown += 1
        if printed.count > AdvertisementReplay.mostSenders { printed.removeAll() }
        guard !advertisement.octets.isEmpty else { return }
        guard printed.updateValue(advertisement.octets, forKey: advertisement.address) != advertisement.octets else {
            return
        }
        let hex = Hexadecimal.text(advertisement.octets.span)
        let problem = AdvertisingData(advertisement.octets).problem
        guard isJSON else {
            let words = problem.map { "no profile: \(hex): \($0)" } ?? "no profile: \(hex)"
            return Terminal.say("\(Self.heading(advertisement))\(words)")
        }
        Terminal.say(
            JSONWriter.text { writer in
                writer.beginObject()
                write(advertisement, to: &writer)
                writer.member("problem", problem)
                writer.member("hex", hex)
                writer.endObject()
            }
        )
    }

    /// The time and the sender, if they are known.
    private static func heading(_ advertisement: CapturedAdvertisement) -> String {
        let words = [advertisement.time?.rfc3339, advertisement.address?.description].compactMap(\.self)
        return words.map { $0 + "  " }.joined()
    }

    private func line(_ advertisement: CapturedAdvertisement, _ outcome: AdvertisementReplay.Outcome) -> String {
        let words =
            switch outcome.result {
            case .decoded(let samples):
                samples.map { "\($0.metric.name) \(SampleText.words($0))" }.joined(separator: ", ")
            case .rejected(let reason):
                "rejected: \(Terminal.harmless(reason)): \(Hexadecimal.text(outcome.payload.span))"
            case .repeated: "nothing new"
            }
        return "\(Self.heading(advertisement))\(outcome.profile.name) \(outcome.stream)  \(words)"
    }

    private func json(_ advertisement: CapturedAdvertisement, _ outcome: AdvertisementReplay.Outcome) -> String {
        JSONWriter.text { writer in
            writer.beginObject()
            write(advertisement, to: &writer)
            writer.member("model", outcome.model?.description)
            writer.member("profile", outcome.profile.name)
            writer.member("stream", outcome.stream)
            switch outcome.result {
            case .decoded(let samples): SampleText.write(samples, outcome.metrics, to: &writer)
            case .rejected(let reason):
                writer.member("rejected", reason)
                writer.member("hex", Hexadecimal.text(outcome.payload.span))
            case .repeated: break
            }
            writer.endObject()
        }
    }

    private func write(_ advertisement: CapturedAdvertisement, to writer: inout JSONWriter) {
        writer.member("ts", advertisement.time?.rfc3339)
        writer.member("source", ReadingSource.advert.rawValue)
        writer.member("address", advertisement.address?.description)
        writer.member("rssi", advertisement.rssi)
    }
}

/// The options with the sender of advertisements: its address and the file with its key.
struct SenderOptions {
    let address: BluetoothAddress?
    let key: BindKey?

    /// - Parameters:
    ///   - arguments: The arguments, with the options `address` and `key`.
    ///   - profile: The profile that gets the key; `nil` for that of each device.
    /// - Throws: ``CommandFailure`` for a wrong option, and for a key that the profile does not take.
    init(_ arguments: Arguments, for profile: (any Profile)? = nil) throws(CommandFailure) {
        address = try arguments.value("address").map { (text) throws(CommandFailure) in
            if let address = BluetoothAddress(anyNotation: text) { return address }
            throw arguments.misuse("'\(text)' is not an address; write it as C0:FF:EE:00:00:01")
        }
        guard let file = arguments.value("key").map({ BindKeyFile(Located($0)) }) else {
            key = nil
            return
        }
        if let finding = file.finding { throw CommandFailure(.data, finding.description) }
        key = file.key
        if let profile, ProfileTools.needsCompleteKey(profile), key?.isComplete == false {
            let problem = "the key of --key has 24 hexadecimal digits"
            throw CommandFailure(
                .data,
                "gattherd: \(problem); the native profile '\(profile.name)' takes only keys of 32"
            )
        }
    }
}
