import GattherdBluetooth
import GattherdCapture
import GattherdGATT
import GattherdGateway
import GattherdModel

/// The line that a person sees while values or advertisements are recorded.
enum RecordingNotice {
    static func text(seconds: Int?) -> String {
        seconds.map { "recording for \($0) s; Ctrl-C ends it sooner" } ?? "recording; Ctrl-C ends it"
    }
}

/// Writes a capture.
final class CaptureRecorder {
    private let destination: OutputDestination
    private let limit: Int
    private var count = 0
    private var indicating: Set<CharacteristicID> = []
    private var isBroken = false

    init(_ destination: OutputDestination, limit: Int) {
        self.destination = destination
        self.limit = limit
    }

    /// True if the limit is reached or writing has failed.
    var isFull: Bool { count >= limit || isBroken }

    /// Writes the header, reads all readable characteristics and subscribes to the others.
    func begin(_ peripheral: GattherdBluetooth.Peripheral) async throws {
        let services = try await peripheral.discoverAll()
        let header = CaptureHeader(
            address: peripheral.address,
            name: peripheral.name,
            services: services.map { service in
                CaptureHeader.Service(
                    service.uuid,
                    service.characteristics.map { .init($0.uuid, properties: $0.properties.words) }
                )
            }
        )
        write(CaptureLine.header(header))
        let characteristics = services.flatMap(\.characteristics)
        for characteristic in characteristics where characteristic.properties.contains(.read) {
            await read(characteristic, of: peripheral)
        }
        for characteristic in characteristics where !characteristic.properties.isDisjoint(with: [.notify, .indicate]) {
            await subscribe(characteristic, of: peripheral)
        }
    }

    /// Writes a value; returns false if no more values are needed.
    func write(_ value: CharacteristicValue) -> Bool {
        guard !isFull else { return false }
        let source: ReadingSource = indicating.contains(value.characteristic) ? .indicate : .notify
        write(value.octets, at: value.time, from: value.characteristic, source)
        return !isFull
    }

    /// Renames the file into place and prints the number of values.
    func finish() throws(CommandFailure) {
        try destination.finish()
        Terminal.printError("\(count) value\(count == 1 ? "" : "s")")
    }

    private func read(_ characteristic: Characteristic, of peripheral: GattherdBluetooth.Peripheral) async {
        guard !isFull else { return }
        do {
            let bytes = try await peripheral.readValue(for: characteristic.id)
            write(bytes, at: SystemClock.now, from: characteristic.id, .read)
        } catch {
            Terminal.printError("gattherd: \(characteristic.uuid) cannot be read: \(Terminal.harmless("\(error)"))")
        }
    }

    private func subscribe(_ characteristic: Characteristic, of peripheral: GattherdBluetooth.Peripheral) async {
        do {
            if !characteristic.properties.contains(.notify) { indicating.insert(characteristic.id) }
            try await peripheral.setNotifyValue(true, for: characteristic.id)
        } catch {
            Terminal.printError(
                "gattherd: \(characteristic.uuid) cannot be listened to: \(Terminal.harmless("\(error)"))"
            )
        }
    }

    private func write(
        _ bytes: [UInt8],
        at time: Timestamp,
        from characteristic: CharacteristicID,
        _ source: ReadingSource
    ) {
        count += 1
        let value = CaptureValue(
            time: time,
            service: characteristic.service ?? characteristic.uuid,
            characteristic: characteristic.uuid,
            source: source,
            octets: bytes
        )
        write(CaptureLine.value(value))
    }

    private func write(_ line: CaptureLine) {
        if !destination.write(line.json) { isBroken = true }
    }
}

extension CharacteristicProperties {
    /// The names of the properties in BlueZ.
    var words: [String] {
        let names: [(Self, String)] = [
            (.broadcast, "broadcast"), (.read, "read"), (.writeWithoutResponse, "write-without-response"),
            (.write, "write"), (.notify, "notify"), (.indicate, "indicate"),
        ]
        return names.filter { contains($0.0) }.map(\.1)
    }
}
