import FoundationEssentials
import GattherdBlueZ
import GattherdBluetooth
import GattherdConfig
import GattherdDBus
import GattherdDaemon
import GattherdGateway
import GattherdLog
import GattherdModel

extension CommandSpec {
    static let bondList = CommandSpec(
        name: "bond list",
        summary: "list the peripherals that this host is bonded with, and the devices that it knows",
        options: [ConfigurationFile.option, .flag("json", "print one JSON array")],
        details: "Asks the daemon while it runs, else BlueZ.",
        json: """
            [{"address", "device"?, "name"?, "adapter", "bonded", "trusted", "connected"}]

            "device" is the name in the configuration, "name" the peripheral's own name, "adapter" an address.
            """,
        exits: [.unavailable: "bluetoothd does not answer"],
        run: { (arguments) async throws(CommandFailure) in
            try await BondCommands(arguments).list(arguments.has("json"))
        }
    )

    static let bondForget = CommandSpec(
        name: "bond forget",
        summary: "end the bond with a device; it can then pair again",
        positionals: [PositionalSpec(name: "DEVICE|ADDRESS")],
        options: [ConfigurationFile.option],
        details: "Ends its link, too. Most peripherals that were bonded must be made to forget the bond as well.",
        exits: [.data: "there is no such bond", .unavailable: "bluetoothd does not answer"],
        examples: ["gattherd bond forget strap", "gattherd bond forget C0:FF:EE:00:00:01"],
        run: { (arguments) async throws(CommandFailure) in
            try await BondCommands(arguments).forget(arguments.positional(0) ?? "")
        }
    )
}

/// Lists and removes bonds: through the daemon while it runs, else through BlueZ.
struct BondCommands {
    private let configuration: Configuration
    private let errors: [ConfigError]

    init(_ arguments: Arguments) {
        let (configuration, errors) = ConfigurationFile(arguments).parsedLeniently()
        self.configuration = configuration.recallingEnrolled()
        self.errors = errors
    }

    func list(_ isJSON: Bool) async throws(CommandFailure) {
        let bonds: [BondStatus]
        switch try ask(.bonds) {
        case .bonds(let reply): bonds = reply
        case .refused(let reason): throw CommandFailure(.unavailable, "gattherd: \(reason)")
        default: bonds = try await withBondService { (service) async throws(BondError) in try await service.list() }
        }
        Terminal.say(try isJSON ? json(bonds) : Self.table(bonds))
    }

    func forget(_ target: String) async throws(CommandFailure) {
        switch try ask(.forgetBond(target)) {
        case .done(let words): return Terminal.say(words)
        case .refused(let reason): throw CommandFailure(.data, "gattherd: \(reason)")
        default:
            try await withBondService { (service) async throws(BondError) in
                try await service.forget(target)
            }
        }
        Terminal.say("the bond with \(target) is removed")
    }

    /// Returns the daemon's reply; `nil` if no daemon runs and the configuration has no errors.
    private func ask(_ call: ControlCall) throws(CommandFailure) -> ControlReply? {
        let client = DaemonClient(configuration, errors: errors)
        do throws(ControlSocketError) {
            let reply = try ControlClient.ask(call, at: client.path)
            client.warn()
            return reply
        } catch {
            guard error.isNobodyThere, errors.isEmpty else { throw client.failure(error) }
            return nil
        }
    }

    private func json(_ bonds: [BondStatus]) throws(CommandFailure) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(bonds) else {
            throw CommandFailure(.software, "gattherd: cannot encode the result as JSON")
        }
        return String(decoding: data, as: UTF8.self)
    }

    private static func table(_ bonds: [BondStatus]) -> String {
        let header = ["ADDRESS", "DEVICE", "ADAPTER", "BONDED", "TRUSTED", "CONNECTED", "NAME"]
        let rows = bonds.map { bond in
            [
                bond.address, bond.device ?? "-", bond.adapter, bond.bonded ? "yes" : "no",
                bond.trusted ? "yes" : "no", bond.connected ? "yes" : "no", bond.name ?? "-",
            ]
        }
        return TextTable(header, rows).lines.joined(separator: "\n")
    }
}

// MARK: - Without the daemon

extension BondCommands {
    /// Runs `body` with an open connection to BlueZ.
    private func withBondService<Answer: Sendable>(
        _ body: (BondService) async throws(BondError) -> Answer
    ) async throws(CommandFailure) -> Answer {
        let central = BlueZCentral(bus: BluetoothBus(configuration.bluetooth.bus).location, log: .silent)
        let service = BondService(central, devices: configuration.devices.map { SupervisedDevice($0) })
        async let running: Void = central.run()
        let result: Result<Answer, CommandFailure>
        do throws(CommandFailure) {
            try await Self.waitUntilThere(central)
            do throws(BondError) { result = .success(try await body(service)) } catch {
                throw CommandFailure(.data, "gattherd: \(error.description)")
            }
        } catch {
            result = .failure(error)
        }
        await central.close()
        await running
        return try result.get()
    }

    private static func waitUntilThere(_ central: BlueZCentral) async throws(CommandFailure) {
        for await event in central.events {
            switch event {
            case .available: return
            case .unavailable(let detail): throw CommandFailure(.unavailable, "gattherd: \(detail)")
            default: continue
            }
        }
    }
}
