import GattherdBluetooth
import GattherdCapture
import GattherdConfig
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProcess
import Glibc

extension CommandSpec {
    static let capture = CommandSpec(
        name: "capture",
        summary: "record every value, or the advertisements, of a device with their bytes",
        positionals: [PositionalSpec(name: "DEVICE|ADDRESS|all"), PositionalSpec(name: "FILE")],
        options: [
            ConfigurationFile.option, .adapter,
            .flag("advertisements", "record advertisements, without connecting; of 'all', those of all peripherals"),
            .value("seconds", "N", "end after N seconds (default: at Ctrl-C)"),
            .value("count", "N", "end after N values"),
            OutputDestination.replacement,
        ],
        details: """
            Reads all readable characteristics, then subscribes to all notifications and indications.
            FILE is JSON, one object a line (- for standard output):

              {"capture":1,"address":…,"name":…,"services":[{"uuid":…,"characteristics":[{"uuid":…,"properties":[…]}]}]}
              {"ts":"2026-11-21T03:20:05.123456Z","service":"180d","characteristic":"2a37","source":"notify","hex":"1648"}

            'gattherd replay' decodes the file, and a simulated peripheral with 'replay: FILE' sends its values.

            Of a device that only advertises, and with --advertisements, the advertisements are recorded:

              {"ts":"2026-11-21T03:20:05.123456Z","address":…,"rssi":-67,"source":"advert","hex":"020106…"}

            "hex" has the AD structures: the services and the name, as far as bluetoothd knows them, and the data of companies
            and services that was just received.

            """ + "\n" + PeripheralClient.daemonHelp,
        exits: PeripheralClient.exits.merging([
            .cannotCreate: "FILE already exists, or cannot be created", .inputOutput: "the disk is full or fails",
        ]) { $1 },
        examples: [
            "gattherd capture strap strap.jsonl --seconds 60", "gattherd capture C0:FF:EE:00:00:01 - --count 10",
            "gattherd capture all air.jsonl --advertisements --seconds 60",
        ],
        run: { (arguments) async throws(CommandFailure) in
            if try AdvertisementCaptureCommand.applies(to: arguments) {
                try await AdvertisementCaptureCommand(arguments).run()
            } else {
                try await CaptureCommand(arguments).run()
            }
        }
    )
}

/// Captures all values of one peripheral.
struct CaptureCommand {
    private enum End: Sendable {
        case asked
        case lost(DisconnectReason?)
    }

    private let client: PeripheralClient
    private let path: String
    private let replaces: Bool
    private let seconds: Int?
    private let count: Int

    init(_ arguments: Arguments) throws(CommandFailure) {
        replaces = arguments.has(OutputDestination.replacement.name)
        seconds = try arguments.seconds("seconds")
        count = try arguments.number("count") ?? .max
        path = arguments.positional(1) ?? "-"
        client = try PeripheralClient(arguments.positional(0) ?? "", arguments)
    }

    func run() async throws(CommandFailure) {
        let signals = ProcessSignals.stream(of: SIGINT, SIGTERM, terminating: [SIGINT, SIGTERM])
        let destination = try OutputDestination(path: path, from: "FILE", replaces: replaces)
        let recorder = CaptureRecorder(destination, limit: count)
        Terminal.printError(RecordingNotice.text(seconds: seconds))
        let end = try await client.run { peripheral in
            let updates = peripheral.valueUpdates(buffering: .bufferingOldest(65_536))
            let changes = peripheral.connectionStateChanges()
            try await recorder.begin(peripheral)
            let end = await record(updates, by: recorder, until: changes, signals)
            if updates.droppedCount > 0 {
                Terminal.printError("gattherd: \(updates.droppedCount) values were lost: they arrived too fast")
            }
            return end
        }
        try recorder.finish()
        if case .lost(let reason) = end {
            throw CommandFailure(
                .unavailable,
                "gattherd: the link ended\(reason.map { " (\($0))" } ?? ""); earlier values are kept"
            )
        }
    }

    /// Writes values until a signal, the limit or the end of the link.
    private func record(
        _ updates: BufferedSequence<CharacteristicValue>,
        by recorder: CaptureRecorder,
        until changes: BufferedSequence<ConnectionStateChange>,
        _ signals: AsyncStream<Int32>
    ) async -> End {
        // The values that were read may be enough, and a silent peripheral sends no others.
        guard !recorder.isFull else { return .asked }
        return await withTaskGroup { group in
            group.addTask {
                defer { updates.stop() }
                for await change in changes {
                    if case .disconnected(let reason, _) = change.state { return End.lost(reason) }
                }
                return .asked
            }
            group.addTask {
                defer { updates.stop() }
                for await _ in signals { break }
                return .asked
            }
            if let seconds {
                group.addTask {
                    defer { updates.stop() }
                    try? await Task.sleep(for: .seconds(seconds))
                    return .asked
                }
            }
            for await value in updates where !recorder.write(value) { break }
            defer { group.cancelAll() }
            return recorder.isFull ? .asked : await group.next() ?? .asked
        }
    }
}
