import GattherdCapture
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// Decodes whole advertisements of one device from the command line.
struct AdvertisementDecodeCommand {
    private let arguments: Arguments
    private let commands: ProfileCommands
    private let profile: (any Profile)?
    private let sender: SenderOptions

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        if arguments.value("file") != nil {
            throw arguments.misuse("--advertisement has the bytes, and --file names a file; leave out one of them")
        }
        if let word = arguments.positional(1) {
            throw arguments.misuse("--advertisement has all parts of an advertisement; leave out '\(word)'")
        }
        if arguments.has("explain"), arguments.has("json") {
            throw arguments.misuse("--explain is for people; leave out --json")
        }
        commands = try ProfileCommands(arguments)
        profile = try commands.advertisementProfile(arguments.positional(0))
        sender = try SenderOptions(arguments, for: profile)
        commands.sayRefusals()
    }

    func run() throws(CommandFailure) {
        let advertisements = try advertisements()
        if !arguments.has("json") {
            for advertisement in advertisements { Terminal.say(AdvertisementText(advertisement.octets).text + "\n") }
        }
        var replay = AdvertisementReplay(
            commands.registry,
            commands.configuration,
            profile: profile,
            key: sender.key
        )
        // The scan response often has the name by which the advertisement before it is recognised.
        for advertisement in advertisements { replay.learn(advertisement, name: arguments.value("name")) }
        let outcomes = advertisements.flatMap { replay.decode($0) ?? [] }
        guard !outcomes.isEmpty else {
            throw unknown(advertisements.compactMap { replay.connectedIdentity(of: $0) }.first)
        }
        var failure: CommandFailure?
        for outcome in outcomes {
            do throws(CommandFailure) { try say(outcome) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Returns the advertisements of `--advertisement`, with the sender's address.
    private func advertisements() throws(CommandFailure) -> [CapturedAdvertisement] {
        let text = arguments.value("advertisement") ?? ""
        let found = try CaptureFile.advertisements(inArgument: text, of: "--advertisement")
        guard !found.isEmpty else {
            throw CommandFailure(.usage, "gattherd: --advertisement has no advertisement; write its AD structures")
        }
        return found.map { advertisement in
            var advertisement = advertisement
            advertisement.address = sender.address ?? advertisement.address
            return advertisement
        }
    }

    private func say(_ outcome: AdvertisementReplay.Outcome) throws(CommandFailure) {
        let (isJSON, isExplained) = (arguments.has("json"), arguments.has("explain"))
        if !isJSON {
            let model = outcome.model.map { "\($0), " } ?? ""
            Terminal.say("\(model)profile \(outcome.profile.name), stream \(outcome.stream)")
        }
        if isExplained {
            let decoding = PayloadDecoding(
                profile: outcome.profile,
                position: outcome.index,
                sender: Sender(address: sender.address ?? BluetoothAddress(value: 0), key: sender.key)
            )
            return try decoding.explain([outcome.payload])
        }
        switch outcome.result {
        case .decoded(let samples):
            Terminal.say(isJSON ? SampleText.json(samples, outcome.metrics) : SampleText.table(samples) + "\n")
        case .repeated: if !isJSON { Terminal.say("nothing new\n") }
        case .rejected(let reason): throw CommandFailure(.data, "rejected: \(Terminal.harmless(reason))")
        }
    }

    private func unknown(_ connected: Identification?) -> CommandFailure {
        let sources = (profile?.streams ?? []).map(\.source).joined(separator: ", ")
        let problem =
            profile.map { "\($0.name) decodes nothing of it; it decodes \(sources)" }
            ?? connected.map { "no profile decodes it; \($0.profile) serves '\($0.name)' over a connection" }
            ?? "no profile decodes it; write one: gattherd profile new NAME --from-advertisement HEX"
        return CommandFailure(.data, "gattherd: \(problem)")
    }
}

/// Decodes a file of whole advertisements.
struct AdvertisementFileCommand {
    private let path: String
    private let printer: AdvertisementPrinter

    init(_ arguments: Arguments) throws(CommandFailure) {
        guard !arguments.has("explain") else {
            throw arguments.misuse("--explain is for one payload; leave out --file")
        }
        path = arguments.value("file") ?? "-"
        let commands = try ProfileCommands(arguments)
        printer = try AdvertisementPrinter(
            arguments,
            commands,
            try commands.advertisementProfile(arguments.positional(0))
        )
        commands.sayRefusals()
    }

    func run() throws(CommandFailure) {
        try CaptureFile(path: path).forEach { (entry) throws(CommandFailure) in
            guard case .advertisement(let advertisement) = entry else {
                throw CommandFailure(
                    .data,
                    "gattherd: \(path) is of a connection; decode it with: gattherd replay \(path)"
                )
            }
            printer.decode(advertisement)
        }
        printer.saySummary()
        if printer.rejected > 0 { throw CommandFailure(.data, "gattherd: \(printer.rejected) rejected") }
    }
}

extension ProfileCommands {
    /// Returns the profile of advertisements with a name; `nil` without a name.
    func advertisementProfile(_ name: String?) throws(CommandFailure) -> (any Profile)? {
        guard let name else { return nil }
        let profile = try profile(named: name)
        guard profile.isForAdvertisements else {
            throw CommandFailure(.data, "gattherd: \(name) is for connections, not for advertisements")
        }
        return profile
    }
}

/// The AD structures of an advertisement as a table.
struct AdvertisementText {
    let text: String

    init(_ octets: [UInt8]) {
        let data = AdvertisingData(octets)
        var place = 0
        let rows = data.structures.map { structure in
            let bytes = structure.octets
            defer { place += bytes.count }
            return [
                bytes.count == 1 ? "\(place)" : "\(place)-\(place + bytes.count - 1)", Self.spaced(bytes),
                structure.typeName, Self.contents(structure),
            ]
        }
        var lines = rows.isEmpty ? [] : TextTable(["AT", "BYTES", "TYPE", "CONTENTS"], rows).lines
        if let problem = data.problem { lines.append("Ignored from byte \(place): \(problem).") }
        if data.hasRepeatedSource {
            lines.append("Of several structures of one company or service, the last counts, as in bluetoothd.")
        }
        text = lines.isEmpty ? "The advertisement is empty." : lines.joined(separator: "\n")
    }

    private static func contents(_ structure: AdvertisingData.Structure) -> String {
        if let name = structure.name { return Terminal.harmless(name) }
        if let frame = structure.frame { return "\(frame.source): \(spaced(frame.octets))" }
        let services = structure.services.map { uuid in uuid.assignedName.map { "\(uuid) (\($0))" } ?? "\(uuid)" }
        if !services.isEmpty { return services.joined(separator: ", ") }
        if structure.type == 0x0A, let power = structure.contents.first { return "\(Int8(bitPattern: power)) dBm" }
        return spaced(structure.contents)
    }

    private static func spaced(_ octets: [UInt8]) -> String {
        octets.map { Hexadecimal.text([$0].span).uppercased() }.joined(separator: " ")
    }
}
