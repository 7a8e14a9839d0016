import GattherdBluetooth
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProcess
import GattherdProfiles
import Glibc

extension CommandSpec {
    private static let place = [PositionalSpec(name: "DEVICE|ADDRESS"), PositionalSpec(name: "CHARACTERISTIC")]
    private static let whereabouts = """
        CHARACTERISTIC is a UUID, for example 2a19, or SERVICE/UUID if there are several: 180f/2a19. The link stays as it
        was.
        """ + "\n" + PeripheralClient.daemonHelp

    static let read = CommandSpec(
        name: "read",
        summary: "read a characteristic of a peripheral",
        positionals: place,
        options: profileSources + [.adapter, .flag("json", "print JSON")],
        details: whereabouts,
        json: "One object as 'gattherd replay --json' prints them.",
        exits: PeripheralClient.exits,
        examples: ["gattherd read strap 2a19"],
        run: { (arguments) async throws(CommandFailure) in try await ValueCommands(arguments).read() }
    )

    static let write = CommandSpec(
        name: "write",
        summary: "write bytes to a characteristic of a peripheral",
        positionals: place + [PositionalSpec(name: "HEX")],
        options: [
            ConfigurationFile.option, .adapter, .flag("without-response", "do not wait for the peripheral's response"),
        ],
        details: whereabouts + "\nFor what a profile declares as a control, use 'gattherd set'.",
        exits: PeripheralClient.exits,
        examples: ["gattherd write lamp 2a06 01"],
        run: { (arguments) async throws(CommandFailure) in try await ValueCommands(arguments).write() }
    )

    static let watch = CommandSpec(
        name: "watch",
        summary: "print the notifications or indications of a characteristic",
        positionals: place,
        options: profileSources + [
            .adapter, .value("seconds", "N", "end after N seconds (default: at Ctrl-C)"),
            .value("count", "N", "end after N values"), .flag("json", "print JSON, one object to a line"),
        ],
        details: whereabouts,
        json: "Objects as 'gattherd replay --json' prints them.",
        exits: PeripheralClient.exits,
        examples: ["gattherd watch strap 2a37 --count 10"],
        run: { (arguments) async throws(CommandFailure) in try await ValueCommands(arguments).watch() }
    )
}

/// Reads, writes and watches one characteristic.
struct ValueCommands {
    private let arguments: Arguments
    private let client: PeripheralClient
    private let id: CharacteristicID

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        let uuids = (arguments.positional(1) ?? "").split(separator: "/").map { BluetoothUUID(String($0)) }
        switch uuids.count {
        case 1: id = try Self.id(uuids[0], nil, arguments)
        case 2: id = try Self.id(uuids[1], uuids[0], arguments)
        default:
            throw arguments.misuse(
                "'\(arguments.positional(1) ?? "")' is neither a UUID nor two UUIDs with a / between"
            )
        }
        client = try PeripheralClient(arguments.positional(0) ?? "", arguments)
    }

    private static func id(
        _ uuid: BluetoothUUID?,
        _ service: BluetoothUUID?,
        _ arguments: Arguments
    ) throws(CommandFailure) -> CharacteristicID {
        let hasService = arguments.positional(1)?.contains("/") ?? false
        guard let uuid, !hasService || service != nil else {
            throw arguments.misuse("'\(arguments.positional(1) ?? "")' is not a UUID; write 2a19, for example")
        }
        return CharacteristicID(uuid, in: service)
    }

    func read() async throws(CommandFailure) {
        let profiles = try ProfileCommands(arguments).registry.profiles
        let text = try await client.run { peripheral in
            var reader = ValueReader(profiles, services: try await peripheral.discoverAll())
            let characteristic = try await peripheral.characteristic(id)
            let bytes = try await peripheral.readValue(for: characteristic.id)
            return line(bytes, of: characteristic, .read, &reader)
        }
        Terminal.say(text)
    }

    func write() async throws(CommandFailure) {
        let hex = arguments.positional(2) ?? ""
        guard let bytes = Hexadecimal.octets(hex) else {
            throw arguments.misuse("'\(hex)' is not hexadecimal; write '01 ff', for example")
        }
        let type: WriteType = arguments.has("without-response") ? .withoutResponse : .withResponse
        try await client.run { peripheral in try await peripheral.write(bytes, to: id, type: type) }
        Terminal.printError("\(bytes.count) byte\(bytes.count == 1 ? "" : "s") written")
    }

    func watch() async throws(CommandFailure) {
        let profiles = try ProfileCommands(arguments).registry.profiles
        let (seconds, count) = (try arguments.seconds("seconds"), try arguments.number("count") ?? .max)
        let signals = ProcessSignals.stream(of: SIGINT, SIGTERM, terminating: [SIGINT, SIGTERM])
        try await client.run { peripheral in
            var reader = ValueReader(profiles, services: try await peripheral.discoverAll())
            let characteristic = try await peripheral.characteristic(id)
            let values = try await peripheral.notifications(of: [UInt8].self, from: characteristic.id)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in signals { break }
                    values.stop()
                }
                if let seconds {
                    group.addTask {
                        try? await Task.sleep(for: .seconds(seconds))
                        values.stop()
                    }
                }
                try await show(values, of: characteristic, count, &reader)
                group.cancelAll()
            }
        }
    }

    private func show(
        _ values: Notifications<[UInt8]>,
        of characteristic: Characteristic,
        _ count: Int,
        _ reader: inout ValueReader
    ) async throws {
        var left = count
        let isNotified = characteristic.properties.contains(.notify)
        for try await bytes in values {
            Terminal.say(line(bytes, of: characteristic, isNotified ? .notify : .indicate, &reader))
            left -= 1
            if left == 0 { return }
        }
    }

    private func line(
        _ bytes: [UInt8],
        of characteristic: Characteristic,
        _ source: ReadingSource,
        _ reader: inout ValueReader
    ) -> String {
        guard !arguments.has("json") else { return reader.json(bytes, of: characteristic, source) }
        let words = reader.words(bytes, of: characteristic).map { "  = \(Terminal.harmless($0))" } ?? ""
        return ByteText.words(bytes) + words
    }
}
