import GattherdBlueZ
import GattherdBluetooth
import GattherdConfig
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles
import Glibc

extension CommandSpec {
    static let add = CommandSpec(
        name: "add",
        summary: "add a peripheral in range as a device",
        positionals: [PositionalSpec(name: "ADDRESS|NAME")],
        options: [
            ConfigurationFile.option, .adapter,
            .value("profile", "PROFILE", "the profiles, separated by commas (default: by what it advertises)"),
            .value("name", "NAME", "the name of the device (default: of its model, or its own name)"),
            .value("key-file", "FILE", "the file with the key of encrypted advertisements"),
            .value("seconds", "N", "listen for it for at most N seconds (default: 20)"),
            .value("wait", "N", "wait for its first value for at most N seconds (default: 60)"),
            .flag("yes", "ask nothing"),
        ],
        details: """
            NAME is what the peripheral advertises, or brand and model as gattherd scan shows them; * stands for any text, ? for
            one character.

            The command listens for the peripheral, proposes a name and the profile that knows its model, and checks the
            configuration with the new device as gattherd check does. It then writes the file gattherd.d/NAME.yaml beside the
            configuration, makes the daemon reload, and shows the first values. It never replaces a file. Where a choice is
            open it asks; with --yes, or without a terminal, it fails and names the options to add.
            """,
        exits: [
            .data: "no profile is known for the peripheral, several are possible, or it is a device already",
            .unavailable: "bluetoothd cannot be reached, the peripheral is not heard, or no value comes",
            .cannotCreate: "the file already exists, or cannot be written",
            .temporary: "the file is written, but the daemon reads its files later: a file system or a profile hangs",
            .configuration: "the configuration is wrong, without the device or with it",
        ],
        examples: [
            "gattherd add A4:C1:38:11:22:33", "gattherd add 'Polar H10*' --name strap",
            "gattherd add A4:C1:38:11:22:33 --profile govee --name kitchen --yes",
        ],
        run: { (arguments) async throws(CommandFailure) in try await AddCommand(arguments).run() }
    )
}

/// Adds a device to the configuration.
struct AddCommand {
    private let arguments: Arguments
    private let file: ConfigurationFile
    private let configuration: Configuration
    private let registry: ProfileRegistry
    private let search: PeripheralSearch
    private let prompt: Prompt
    private let timeout: Duration

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        file = ConfigurationFile(arguments)
        configuration = try file.load()
        do throws(ConfigErrors) {
            registry = try configuration.loadProfiles(for: ServiceAccess(file)?.profileAccount ?? .current)
        } catch {
            throw CommandFailure(.configuration, error.description)
        }
        let target = arguments.positional(0) ?? ""
        search = PeripheralSearch(
            target: BluetoothAddress(anyNotation: target).map { .address($0) } ?? .name(NamePattern(target)),
            title: target,
            limit: .seconds(min(try arguments.seconds("seconds") ?? 20, 3600)),
            registry: registry
        )
        timeout = .seconds(min(try arguments.seconds("wait") ?? 60, 3600))
        prompt = Prompt(isSilent: arguments.has("yes"))
        guard !target.isEmpty else { throw arguments.misuse("ADDRESS|NAME is empty") }
        if let name = arguments.value("name"), !Slug.isValid(name) {
            throw arguments.misuse(Self.problem(ofName: name))
        }
    }

    private static func problem(ofName name: String) -> String {
        "'\(name)' is not a name; write a-z, 0-9, '-' and '_', 64 of them at most"
    }

    func run() async throws(CommandFailure) {
        if case .address(let address) = search.target { try refuseDevice(at: address) }
        let found = try await find()
        try refuseDevice(at: found.address)
        let proposal = try proposal(found)
        let source = proposal.source(in: file, by: "gattherd add")
        let path = source.name
        let next = try file.checked(with: [source], registry)
        Terminal.printError(proposal.text)
        guard try prompt.confirms("Write this to \(path)?") else {
            throw CommandFailure(.general, "gattherd: nothing was changed")
        }
        do throws(GatewayError) {
            try file.add(source)
        } catch {
            throw CommandFailure(.cannotCreate, "gattherd: \(error.message)")
        }
        Terminal.say("wrote \(path)")
        try await show(proposal.name, next)
    }

    /// Makes the daemon reload, and prints the device's first values.
    private func show(_ device: String, _ next: Configuration) async throws(CommandFailure) {
        let client = DaemonClient(next)
        guard try client.isDaemonThere() else {
            return Terminal.say(DaemonClient.startAdvice)
        }
        try client.reload()
        let values = try await FirstReading(device: device, configuration: next, limit: timeout).wait()
        Terminal.say((["\(device):"] + values).joined(separator: "\n"))
    }

    // MARK: - The peripheral

    private func refuseDevice(at address: BluetoothAddress) throws(CommandFailure) {
        let configured = configuration.recallingEnrolled().devices.first { $0.address.value == address }
        guard let configured else { return }
        let place = configured.name.place.map { ", in \($0)" } ?? ", which a rule has made"
        throw CommandFailure(.data, "gattherd: \(address) is already the device '\(configured.name.value)'\(place)")
    }

    private func find() async throws(CommandFailure) -> HeardPeripheral {
        let central = PeripheralClient.central(arguments, configuration)
        let result: [HeardPeripheral]?
        do {
            result = try await withCentral(on: PeripheralClient.bus(configuration), configuration: central) {
                (central) async throws -> [HeardPeripheral]? in try await search.run(central)
            }
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(Terminal.harmless("\(error)"))")
        }
        guard let found = result else { throw CommandFailure(.general, "gattherd: nothing was changed") }
        guard let first = found.first else {
            let advice = "switch it on or wake it, bring it nearer, and see: gattherd scan"
            throw CommandFailure(.unavailable, "gattherd: \(search.silence); \(advice)")
        }
        guard found.count > 1 else { return first }
        let lines = found.map { "\($0.address)  \($0.rssi.map { "\($0) dBm" } ?? "connected")  \($0.title)" }
        let index = try choice("Which of them", lines, option: "its address instead of the name")
        return found.indices.contains(index) ? found[index] : first
    }

    // MARK: - The device

    private func proposal(_ found: HeardPeripheral) throws(CommandFailure) -> DeviceProposal {
        guard !found.hasPrivateAddress else {
            throw CommandFailure(
                .data,
                "gattherd: \(found.address) is a private address, which changes every few minutes; "
                    + "see 'Private addresses' in docs/devices.md"
            )
        }
        let (profiles, identity) = try profiles(found)
        let name = try name(found, identity)
        var proposal = DeviceProposal(name: name, address: found.address, profiles: profiles)
        proposal.model = identity?.model?.description
        proposal.keyFile = try keyFile(name, identity)
        return proposal
    }

    /// Returns the profiles to name, and the identification with one of them, if any.
    private func profiles(
        _ found: HeardPeripheral
    ) throws(CommandFailure) -> (names: [String], Identification?) {
        if let stated = arguments.value("profile") {
            let names = stated.split(separator: ",").map { String($0) }
            let known = found.candidates.first { names.contains($0.profile) }
            return (names, known)
        }
        guard let first = found.candidates.first else {
            // A connected peripheral does not advertise; its services tell which profiles serve it.
            if found.rssi == nil { return ([], nil) }
            throw CommandFailure(
                .data,
                "gattherd: no profile decodes what \(found.address) advertises; state one with --profile, look for a "
                    + "catalogue entry in docs/catalogue.md, see what it has: gattherd inspect \(found.address), "
                    + "or write a profile: docs/profiles.md"
            )
        }
        let lines = found.candidates.map { "\($0.profile)  \($0.name)" }
        let index = try lines.count == 1 ? 0 : choice("Which profile", lines, option: "--profile")
        let identity = found.candidates.indices.contains(index) ? found.candidates[index] : first
        return (identity.namedProfiles, identity)
    }

    private func name(
        _ found: HeardPeripheral,
        _ identity: Identification?
    ) throws(CommandFailure) -> String {
        let taken = Set(configuration.devices.map(\.name.value))
        let standard = found.proposedName(identity, taken: taken)
        if let stated = arguments.value("name") { return stated }
        guard prompt.isInteractive else { return standard }
        while true {
            let name = try prompt.text("Name of the device", standard: standard)
            if Slug.isValid(name) { return name }
            Terminal.printError(Terminal.harmless("gattherd: \(Self.problem(ofName: name))"))
        }
    }

    private func keyFile(_ name: String, _ identity: Identification?) throws(CommandFailure) -> String? {
        let folder = file.path.lastIndex(of: "/").map { String(file.path[...$0]) } ?? ""
        let standard = "\(folder)\(name).key"
        if let stated = arguments.value("key-file") {
            guard !stated.unicodeScalars.contains(where: { $0.value < 0x20 || $0 == "$" }) else {
                throw arguments.misuse("the name of a key file has neither control characters nor $")
            }
            return stated.hasPrefix("/") ? stated : Terminal.currentFolder + "/" + stated
        }
        guard let key = identity?.model?.key else { return nil }
        let isThere = unsafe access(standard, F_OK) == 0
        guard !isThere else { return file.value(naming: standard) }
        throw CommandFailure(
            .data,
            """
            gattherd: its advertisements are encrypted. \(key). Write the key as hexadecimal digits into \(standard), \
            which only root and the daemon's user may read, and repeat the command with --name \(name), or name \
            another file with --key-file
            """
        )
    }

    /// Returns the index that a person chooses.
    private func choice(_ title: String, _ lines: [String], option: String) throws(CommandFailure) -> Int {
        if let index = try prompt.choice(title, of: lines) { return index }
        let all = lines.map { "  " + Terminal.harmless($0) }.joined(separator: "\n")
        throw CommandFailure(.data, "gattherd: several are possible; state \(option)\n\(all)")
    }
}

extension HeardPeripheral {
    /// The advertised name and the model.
    fileprivate var title: String {
        [name, candidates.first?.name].compactMap(\.self).joined(separator: ", ")
    }
}
