import GattherdBlueZ
import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProcess
import GattherdProfiles
import Glibc

extension CommandSpec {
    static let scan = CommandSpec(
        name: "scan",
        summary: "list the peripherals in range",
        options: [
            ConfigurationFile.option, .adapter,
            .value("service", "UUID", "only those that advertise it, for example 180d"),
            .value("seconds", "N", "listen for N seconds (default: 5; Ctrl-C ends it sooner)"),
            .flag("json", "print JSON"),
        ],
        details:
            """
            The daemon may run meanwhile. The strongest signal is printed first; DEVICE is the name in the configuration. Connected
            peripherals do not advertise and are shown as connected. One adapter listens.

            MODEL is the brand and model if a profile knows it, else the title of a profile that decodes what the peripheral
            advertises. Any transmitter can advertise as any model. gattherd add ADDRESS adds a peripheral as a device.
            """,
        json: """
            One array of objects: address, connected, services; and, if known, rssi in dBm, name, device, tx_power in dBm,
            manufacturer_data (hexadecimal, by company identifier), service_data (by service), brand, model, profile, and
            key (where to find the key of encrypted advertisements).
            """,
        exits: [.unavailable: "bluetoothd cannot be reached, or the adapter is off"],
        examples: ["gattherd scan", "gattherd scan --service 180d --seconds 20 --json"],
        run: { (arguments) async throws(CommandFailure) in try await ScanCommand(arguments).run() }
    )
}

/// Lists the peripherals that advertise.
struct ScanCommand {
    /// A peripheral that was heard, or that is connected and therefore silent.
    private struct FoundPeripheral: Sendable {
        let address: BluetoothAddress
        /// The signal strength in dBm; `nil` for a connected peripheral.
        let rssi: Int?
        let name: String?
        var services: [BluetoothUUID] = []
        var data = AdvertisementData()
        /// The profile and perhaps the model; `nil` for an unknown kind of peripheral.
        var identity: Identification?

        init(_ advertisement: Advertisement, _ registry: ProfileRegistry) {
            (address, rssi, name) = (advertisement.address, advertisement.rssi, advertisement.name)
            (services, data) = (advertisement.services, advertisement.data)
            identity = registry.identify(AdvertisedTraits(advertisement))
        }

        init(connected peripheral: GattherdBluetooth.Peripheral) {
            (address, rssi, name) = (peripheral.address, nil, peripheral.name)
        }

        /// Sorts by signal strength, with connected peripherals last.
        static func < (left: Self, right: Self) -> Bool {
            let (one, other) = (left.rssi ?? .min, right.rssi ?? .min)
            return one == other ? left.address < right.address : one > other
        }
    }

    private let bus: BluetoothBus
    private let central: Central.Configuration
    private let names: [BluetoothAddress: String]
    private let services: [BluetoothUUID]
    private let seconds: Int
    private let isJSON: Bool
    private let registry: ProfileRegistry

    init(_ arguments: Arguments) throws(CommandFailure) {
        seconds = try arguments.seconds("seconds") ?? 5
        isJSON = arguments.has("json")
        services =
            try arguments.value("service").map { (text) throws(CommandFailure) in
                guard let uuid = BluetoothUUID(text) else { throw arguments.misuse("'\(text)' is not a UUID") }
                return [uuid]
            } ?? []
        let configuration = try PeripheralClient.configuration(arguments)
        bus = PeripheralClient.bus(configuration)
        central = PeripheralClient.central(arguments, configuration)
        registry = InstalledProfiles.load(configuration)
        let devices = (configuration?.devices ?? []).map { ($0.address.value, $0.name.value) }
        names = Dictionary(devices) { first, _ in first }
    }

    func run() async throws(CommandFailure) {
        Terminal.printError("listening for \(seconds) s; Ctrl-C ends it sooner")
        var found: [FoundPeripheral]
        do {
            found = try await withCentral(on: bus, configuration: self.central) {
                (central) async throws -> [FoundPeripheral] in
                try await central.waitUntilReady()
                let heard = try await listen(central).map { FoundPeripheral($0, registry) }
                let addresses = Set(heard.map(\.address))
                let connected = central.connectedPeripherals(services: services)
                return heard
                    + connected.filter { !addresses.contains($0.address) }.map { FoundPeripheral(connected: $0) }
            }
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
        found.sort(by: <)
        Terminal.say(isJSON ? json(found) : table(found))
    }

    /// Returns the newest advertisement of each peripheral.
    private func listen(_ central: Central) async throws -> [Advertisement] {
        let signals = ProcessSignals.stream(of: SIGINT, SIGTERM, terminating: [SIGINT, SIGTERM])
        let end = ContinuousClock.now + .seconds(seconds)
        return try await withThrowingTaskGroup(of: [Advertisement]?.self) { group in
            group.addTask {
                var heard: [BluetoothAddress: Advertisement] = [:]
                do {
                    for try await advertisement in central.scan(services: services, allowDuplicates: true) {
                        heard[advertisement.address] = advertisement
                    }
                } catch let error as BluetoothError where error.kind == .cancelled {
                    // The timer or a signal has ended the scan.
                }
                return Array(heard.values)
            }
            group.addTask {
                try? await Task.sleep(until: end)
                return nil
            }
            group.addTask {
                for await _ in signals { break }
                return nil
            }
            while let result = try await group.next() {
                group.cancelAll()
                if let result { return result }
            }
            return []
        }
    }

    // MARK: - Printing

    private func table(_ found: [FoundPeripheral]) -> String {
        let rows = found.map { peripheral in
            [
                peripheral.address.description, peripheral.rssi.map { "\($0) dBm" } ?? "connected",
                names[peripheral.address] ?? "-", peripheral.name.map(Terminal.harmless) ?? "-",
                peripheral.identity?.name ?? "-", content(peripheral),
            ]
        }
        let header = ["ADDRESS", "RSSI", "DEVICE", "NAME", "MODEL", "ADVERTISES"]
        let count = "\(found.count) peripheral\(found.count == 1 ? "" : "s")"
        return ((found.isEmpty ? [] : TextTable(header, rows).lines) + [count + advice(found)]).joined(separator: "\n")
    }

    /// The next step, if a peripheral is not a device and its kind is known.
    private func advice(_ found: [FoundPeripheral]) -> String {
        let unknown = found.contains { names[$0.address] == nil && $0.identity != nil }
        return unknown ? "; add one as a device: gattherd add ADDRESS" : ""
    }

    private func content(_ peripheral: FoundPeripheral) -> String {
        let services = peripheral.services.map { $0.assignedName ?? $0.description }
        let serviceData = peripheral.data.serviceData.keys.map { "data of \($0)" }.sorted()
        let makers = peripheral.data.manufacturerData.keys.sorted().map { "data of company \(hexadecimal($0))" }
        let all = services + serviceData + makers
        return all.isEmpty ? "-" : all.joined(separator: ", ")
    }

    private func hexadecimal(_ number: UInt16) -> String {
        Hexadecimal.text([UInt8(number >> 8), UInt8(truncatingIfNeeded: number)].span)
    }

    private func json(_ found: [FoundPeripheral]) -> String {
        JSONWriter.text { writer in
            writer.array(found) { write($1, to: &$0) }
        }
    }

    private func write(_ peripheral: FoundPeripheral, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("address", peripheral.address.description)
        writer.member("rssi", peripheral.rssi)
        writer.key("connected")
        writer.boolean(peripheral.rssi == nil)
        writer.member("device", names[peripheral.address])
        writer.member("name", peripheral.name)
        writer.key("services")
        writer.array(peripheral.services) { $0.string($1.description) }
        writer.member("tx_power", peripheral.data.txPower)
        let makers = peripheral.data.manufacturerData.map { (hexadecimal($0.key), $0.value) }
        let services = peripheral.data.serviceData.map { ($0.key.description, $0.value) }
        member("manufacturer_data", makers, to: &writer)
        member("service_data", services, to: &writer)
        writer.member("brand", peripheral.identity?.model?.brand)
        writer.member("model", peripheral.identity?.model?.model)
        writer.member("profile", peripheral.identity?.profile)
        writer.member("key", peripheral.identity?.model?.key)
        writer.endObject()
    }

    private func member(_ name: String, _ data: [(String, [UInt8])], to writer: inout JSONWriter) {
        guard !data.isEmpty else { return }
        writer.key(name)
        writer.beginObject()
        for (key, bytes) in data.sorted(by: { $0.0 < $1.0 }) {
            writer.key(key)
            writer.string(Hexadecimal.text(bytes.span))
        }
        writer.endObject()
    }
}
