import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdModel
import GattherdProfiles
import GattherdSync

/// The peripherals in radio range, for adding devices.
///
/// All adapters scan from a request until ``patience`` after the last one.
final class PeripheralScan: Sendable {
    /// The time for which the adapters continue scanning after a request.
    private static let patience = Duration.seconds(15)
    /// The maximum number of peripherals in one answer.
    private static let maximum = 200
    /// The longest advertised name in an answer, in bytes.
    private static let longestName = 100

    private let running: RunningConfiguration
    private let supervisor: Supervisor
    private let end = Locked<SuspendingClock.Instant?>(nil)
    private let (requests, request) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(_ running: RunningConfiguration, _ supervisor: Supervisor) {
        (self.running, self.supervisor) = (running, supervisor)
    }

    /// Starts and ends scans until cancelled.
    func run() async {
        for await _ in requests {
            supervisor.setListening(true)
            while let rest = remaining { try? await Task.sleep(for: rest, clock: .loop) }
            supervisor.setListening(false)
        }
    }

    /// The time until the scan ends; `nil` once it is over.
    private var remaining: Duration? {
        guard !Task.isCancelled, let end = end.withLock({ $0 }), end > .now else { return nil }
        return SuspendingClock.Instant.now.duration(to: end)
    }

    /// Returns the peripherals that are heard now, the strongest first, as JSON; the scan continues for a while.
    func peripherals() async -> [UInt8] {
        end.withLock { $0 = .now + Self.patience }
        request.yield()
        let known = await supervisor.knownPeripherals.filter { $0.rssi != nil || $0.isConnected }
        let nearest = Dictionary(grouping: known, by: \.id.address).values.compactMap { group in
            group.max { Self.strength($0) < Self.strength($1) }
        }
        let sorted = nearest.sorted { Self.strength($0) > Self.strength($1) }.prefix(Self.maximum)
        let devices = running.configuration.devices.map { ($0.address.value, $0.name.value) }
        let names = Dictionary(devices) { first, _ in first }
        return JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("peripherals")
            writer.beginArray()
            for peripheral in sorted { write(peripheral, names, to: &writer) }
            writer.endArray()
            writer.endObject()
        }
    }

    /// The signal strength, with connected peripherals last.
    private static func strength(_ peripheral: PeripheralStatus) -> Int { peripheral.rssi ?? .min }

    private func write(
        _ peripheral: PeripheralStatus,
        _ devices: [BluetoothAddress: String],
        to writer: inout JSONWriter
    ) {
        let candidates = running.registry.candidates(AdvertisedTraits(peripheral))
        let heard = HeardPeripheral(
            address: peripheral.id.address,
            name: peripheral.name?.cut(toBytes: Self.longestName),
            rssi: peripheral.rssi,
            hasPrivateAddress: peripheral.hasPrivateAddress,
            candidates: candidates
        )
        writer.beginObject()
        writer.member("address", heard.address.description)
        writer.member("name", heard.name)
        writer.member("rssi", heard.rssi)
        writer.key("connected")
        writer.boolean(peripheral.isConnected)
        writer.key("private")
        writer.boolean(heard.hasPrivateAddress)
        writer.member("device", devices[heard.address])
        writer.member("model", candidates.first?.model?.description)
        writer.member("key", candidates.first?.model?.key)
        writer.member("proposal", heard.proposedName(candidates.first, taken: Set(devices.values)))
        writer.key("profiles")
        writer.beginArray()
        for candidate in candidates {
            writer.beginObject()
            writer.member("profile", candidate.profile)
            writer.member("name", candidate.name)
            writer.key("named")
            writer.boolean(candidate.isOptIn)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }
}
