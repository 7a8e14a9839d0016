import FoundationEssentials
import GattherdBluetooth
import GattherdConfig
import GattherdGATT
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let profileNew = CommandSpec(
        name: "profile new",
        summary: "create a profile, empty or from a device",
        positionals: [PositionalSpec(name: "NAME")],
        options: [
            .value("from-device", "DEVICE|ADDRESS", "connect to it, and use its characteristics and values"),
            .value("from-advertisement", "HEX|FILE", "use an advertisement, or a file that 'gattherd replay' reads"),
            .value("address", "ADDRESS", "the device in that file"),
            .value("listen", "SECONDS", "the time to wait for notifications (default: 5)"),
            .flag("swift", "write a Swift package of a native profile"),
            .value("gattherd", "FOLDER", "the package with ProfileKit (default: this checkout, or gattherd-dev)"),
            .value(
                "output",
                "PATH",
                "the file, or the package's folder (default: NAME.yaml, or NAME; - for the terminal)"
            ),
            .value("config", "FILE", "the configuration: devices, bus, profiles"), .adapter,
        ],
        details: """
            The file passes 'profile check' and 'profile test': each value of the device becomes a test. Characteristics with a
            profile are left out, unless nothing else remains. The daemon may use the device meanwhile.

            --from-advertisement starts a profile of advertisements: each length of the data of each company and service is a
            stream, and each value a test. HEX has AD structures; more advertisements of the device follow after commas.
            """,
        exits: PeripheralClient.exits.merging([
            .data: "there is no such device, or it has nothing to decode",
            .noInput: "the file with advertisements, or ProfileKit, is missing",
            .cannotCreate: "the file already exists",
        ]) { $1 },
        examples: [
            "gattherd profile new soil-probe --from-device C0:FF:EE:00:00:09",
            "gattherd profile new soil-probe --from-device probe --swift",
            "gattherd profile new porch --from-advertisement '02 01 06 06 FF FF FF C4 09 2C'",
            "gattherd profile new porch --from-advertisement air.jsonl --address C0:FF:EE:00:00:01",
        ],
        run: { (arguments) async throws(CommandFailure) in try await ProfileNewCommand(arguments).run() }
    )
}

/// Writes the skeleton of a profile.
struct ProfileNewCommand {
    private let name: String
    private let arguments: Arguments
    private let timeout: Duration

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        name = arguments.positional(0) ?? ""
        guard ProfileTools.isName(name) else {
            throw arguments.misuse("'\(name)' is not a name; write a-z, 0-9, '-' and '_', 64 of them at most")
        }
        guard let seconds = Int(arguments.value("listen") ?? "5"), (0...3600).contains(seconds) else {
            throw arguments.misuse("--listen is a number of seconds from 0 to 3600")
        }
        timeout = .seconds(seconds)
        let hasOthers = arguments.has("swift") || arguments.value("from-device") != nil
        if arguments.value("from-advertisement") != nil, hasOthers {
            throw arguments.misuse("--from-advertisement makes a YAML file; leave out --swift and --from-device")
        }
    }

    func run() async throws(CommandFailure) {
        let path = arguments.value("output") ?? (arguments.has("swift") ? name : "\(name).yaml")
        if path != "-", FileManager.default.fileExists(atPath: path) {
            throw CommandFailure(
                .cannotCreate,
                "gattherd: \(path) already exists; remove it, or choose another --output"
            )
        }
        if let input = arguments.value("from-advertisement") {
            return try write(try AdvertisementSample(input, arguments).skeleton(name).text, to: path)
        }
        let skeleton = try await skeleton()
        guard skeleton.isUseful else {
            throw CommandFailure(.data, "gattherd: the device has no characteristic to read, write or subscribe to")
        }
        if arguments.has("swift") {
            try SwiftPackage(skeleton, folder: path, gattherd: arguments.value("gattherd")).write()
        } else {
            try write(skeleton.text, to: path)
        }
    }

    private func write(_ text: String, to path: String) throws(CommandFailure) {
        let destination = try OutputDestination(path: path)
        _ = destination.write(text)
        try destination.finish()
        if path != "-" { Terminal.say("wrote \(path); see: gattherd profile test \(path)") }
    }

    private func skeleton() async throws(CommandFailure) -> ProfileSkeleton {
        guard let who = arguments.value("from-device") else {
            return ProfileSkeleton(
                name: name,
                origin: "a device that is still to be described",
                characteristics: ProfileTools.exampleCharacteristics
            )
        }
        let all = try ProfileCommands(arguments).registry.profiles
        let client = try PeripheralClient(who, arguments)
        let (found, title) = try await client.run { peripheral in
            let survey = PeripheralInspection(peripheral, timeout: timeout)
            return (try await survey.characteristics(), peripheral.description)
        }
        let services = Set(found.map(\.service))
        let known = all.filter { !$0.isOptIn && !services.isDisjoint(with: $0.services) }
        let unknown = found.filter { characteristic in !known.contains { $0.decodes(characteristic) } }
        for characteristic in found where !unknown.isEmpty && !unknown.contains(characteristic) {
            let profile = known.first { $0.decodes(characteristic) }?.name ?? ""
            Terminal.printError(
                "left out \(ProfileFacts.named(characteristic.uuid)): the profile '\(profile)' decodes it"
            )
        }
        return ProfileSkeleton(name: name, origin: title, characteristics: unknown.isEmpty ? found : unknown)
    }
}

extension Profile {
    fileprivate func decodes(_ found: SkeletonCharacteristic) -> Bool {
        characteristics.contains { characteristic in
            guard characteristic.uuid == found.uuid else { return false }
            return characteristic.service.map { $0 == found.service } ?? services.contains(found.service)
        }
    }
}
