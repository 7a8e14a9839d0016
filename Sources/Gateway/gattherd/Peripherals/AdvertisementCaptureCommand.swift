import GattherdBlueZ
import GattherdBluetooth
import GattherdCapture
import GattherdConfig
import GattherdGATT
import GattherdGateway
import GattherdLog
import GattherdModel
import GattherdProcess
import GattherdSync
import GattherdYAML
import Glibc

/// Captures the advertisements of one peripheral, or of all.
struct AdvertisementCaptureCommand {
    /// The word for all peripherals.
    static let everything = "all"

    private let bus: BluetoothBus
    private let central: Central.Configuration
    /// The peripheral; `nil` for all.
    private let address: BluetoothAddress?
    private let path: String
    private let replaces: Bool
    private let seconds: Int?
    private let count: Int

    init(_ arguments: Arguments) throws(CommandFailure) {
        replaces = arguments.has(OutputDestination.replacement.name)
        seconds = try arguments.seconds("seconds")
        count = try arguments.number("count") ?? .max
        path = arguments.positional(1) ?? "-"
        let configuration = try PeripheralClient.configuration(arguments)
        bus = PeripheralClient.bus(configuration)
        let who = arguments.positional(0) ?? Self.everything
        let devices = configuration?.devices ?? []
        let device = PeripheralClient.device(who, among: devices)
        address = device?.address.value ?? BluetoothAddress(anyNotation: who)
        guard who == Self.everything || address != nil else { throw PeripheralClient.unknown(who, among: devices) }
        central = PeripheralClient.central(arguments, configuration, for: device)
    }

    /// True if the arguments name advertisements, or a device that only advertises.
    static func applies(to arguments: Arguments) throws(CommandFailure) -> Bool {
        if arguments.has("advertisements") { return true }
        let configuration = try PeripheralClient.configuration(arguments)
        let who = arguments.positional(0) ?? ""
        let device = PeripheralClient.device(who, among: configuration?.devices ?? [])
        guard who != everything || device != nil else {
            throw arguments.misuse("of 'all' only advertisements can be recorded; add --advertisements")
        }
        guard let configuration, let device, device.profiles != nil else { return false }
        do throws(ConfigErrors) {
            return device.isListenedTo(with: try configuration.loadProfiles())
        } catch {
            throw CommandFailure(.configuration, error.description)
        }
    }

    func run() async throws(CommandFailure) {
        let signals = ProcessSignals.stream(of: SIGINT, SIGTERM, terminating: [SIGINT, SIGTERM])
        let destination = try OutputDestination(path: path, from: "FILE", replaces: replaces)
        let recorder = AdvertisementRecorder(destination, limit: count)
        Terminal.printError(RecordingNotice.text(seconds: seconds))
        let backend = BlueZCentral(bus: bus.location, log: .silent)
        do {
            try await Central(backend: backend, configuration: central).run { central in
                try await central.waitUntilReady()
                try await record(central, backend, by: recorder, until: signals)
            }
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(Terminal.harmless("\(error)"))")
        }
        try recorder.finish()
    }

    /// Scans and writes advertisements until a signal, the limit or the end of the time.
    private func record(
        _ central: Central,
        _ backend: BlueZCentral,
        by recorder: AdvertisementRecorder,
        until signals: AsyncStream<Int32>
    ) async throws {
        let sink = AdvertisementStream()
        await backend.watch(
            AdvertisementWatch(
                addresses: address.map { [$0] } ?? [],
                sources: [],
                includesAll: address == nil,
                sink: sink
            )
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { sink.finish() }
                for try await _ in central.scan(allowDuplicates: true) {}
            }
            group.addTask {
                for await _ in signals { break }
                sink.finish()
            }
            if let seconds {
                group.addTask {
                    try? await Task.sleep(for: .seconds(seconds))
                    sink.finish()
                }
            }
            for await heard in sink.stream where !recorder.write(heard.advertisement, at: heard.time) { break }
            group.cancelAll()
            do {
                try await group.waitForAll()
            } catch let error as BluetoothError where error.kind == .cancelled {
                // The limit, the time or a signal has ended the scan.
            }
        }
        let dropped = sink.dropped
        if dropped > 0 { Terminal.printError("\(dropped) advertisements were dropped: the output is too slow") }
    }
}

/// Passes advertisements from the central's thread on.
private final class AdvertisementStream: AdvertisementSink {
    let stream: AsyncStream<(advertisement: HeardAdvertisement, time: Timestamp)>
    private let continuation: AsyncStream<(advertisement: HeardAdvertisement, time: Timestamp)>.Continuation
    private let drops = Locked(0)

    /// The advertisements that were dropped because they were not written as fast as they came.
    var dropped: Int { drops.withLock { $0 } }

    init() {
        (stream, continuation) = AsyncStream.makeStream(
            of: (advertisement: HeardAdvertisement, time: Timestamp).self,
            bufferingPolicy: .bufferingOldest(65_536)
        )
    }

    func receive(_ advertisement: HeardAdvertisement, at time: Timestamp) {
        if case .dropped = continuation.yield((advertisement, time)) { drops.withLock { $0 += 1 } }
    }

    func finish() {
        continuation.finish()
    }
}

/// Writes a capture of advertisements.
final class AdvertisementRecorder {
    private let destination: OutputDestination
    private let limit: Int
    private var count = 0
    private var isBroken = false
    /// The senders with at least one written advertisement.
    private var senders: Set<BluetoothAddress> = []

    init(_ destination: OutputDestination, limit: Int) {
        (self.destination, self.limit) = (destination, limit)
        write(.advertisements)
    }

    /// Writes an advertisement as AD structures; returns false if no more are needed.
    ///
    /// bluetoothd also reports changes without data; only the first of each sender is written.
    func write(_ heard: HeardAdvertisement, at time: Timestamp) -> Bool {
        let address = heard.peripheral.address
        guard senders.insert(address).inserted || !heard.frames.isEmpty else { return true }
        let data = AdvertisingData(
            name: heard.name,
            services: heard.services,
            frames: heard.frames.map { ($0.source, $0.octets) }
        )
        count += 1
        write(
            .advertisement(
                CapturedAdvertisement(time: time, address: address, rssi: heard.rssi, octets: data.octets)
            )
        )
        return count < limit && !isBroken
    }

    /// Renames the file into place and prints the number of advertisements.
    func finish() throws(CommandFailure) {
        try destination.finish()
        let peripherals = "\(senders.count) peripheral\(senders.count == 1 ? "" : "s")"
        Terminal.printError("\(count) advertisement\(count == 1 ? "" : "s") of \(peripherals)")
    }

    private func write(_ line: CaptureLine) {
        if !destination.write(line.json) { isBroken = true }
    }
}
