import GattherdBluetooth
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let inspect = CommandSpec(
        name: "inspect",
        summary: "connect to a peripheral and show its GATT table",
        positionals: [PositionalSpec(name: "DEVICE|ADDRESS")],
        options: profileSources + [.adapter, .flag("json", "print JSON")],
        details: """
            Shows services, characteristics and descriptors with their Bluetooth SIG names. Reads all readable values and decodes
            them by the profiles that would serve the device. The link stays as it was.
            """ + "\n" + PeripheralClient.daemonHelp,
        json: """
            One object: address, name, profiles, and services: [{"uuid", "name", "characteristics": [{"uuid", "name",
            "properties", "hex" and "meaning" if it was read, "error" if that failed, "descriptors": [{"uuid",
            "name", "hex"}]}]}].
            """,
        exits: PeripheralClient.exits,
        examples: ["gattherd inspect strap", "gattherd inspect C0:FF:EE:00:00:01 --json"],
        run: { (arguments) async throws(CommandFailure) in try await InspectCommand(arguments).run() }
    )
}

/// Shows a peripheral's whole GATT table.
struct InspectCommand {
    private struct Entry: Sendable {
        let characteristic: Characteristic
        var value: Result<[UInt8], BluetoothError>?
        var meaning: String?
        var descriptors: [(uuid: BluetoothUUID, octets: [UInt8]?)] = []
    }

    private struct Findings: Sendable {
        var name: String?
        var profiles: [String] = []
        var services: [(service: Service, entries: [Entry])] = []
    }

    private let client: PeripheralClient
    private let profiles: [any Profile]
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(CommandFailure) {
        isJSON = arguments.has("json")
        profiles = try ProfileCommands(arguments).registry.profiles
        client = try PeripheralClient(arguments.positional(0) ?? "", arguments)
    }

    func run() async throws(CommandFailure) {
        let findings = try await client.run { try await inspect($0) }
        Terminal.say(isJSON ? json(findings) : text(findings))
    }

    private func inspect(_ peripheral: GattherdBluetooth.Peripheral) async throws -> Findings {
        let services = try await peripheral.discoverAll()
        var reader = ValueReader(profiles, services: services)
        var findings = Findings()
        findings.name = peripheral.name
        let used = Set(services.flatMap(\.characteristics).map(\.uuid))
        findings.profiles = reader.profiles.filter { profile in
            !profile.services.isEmpty || profile.characteristics.contains { used.contains($0.uuid) }
        }.map(\.name)
        for service in services {
            var entries: [Entry] = []
            for characteristic in service.characteristics {
                entries.append(await inspect(characteristic, of: peripheral, &reader))
            }
            findings.services.append((service, entries))
        }
        return findings
    }

    private func inspect(
        _ characteristic: Characteristic,
        of peripheral: GattherdBluetooth.Peripheral,
        _ reader: inout ValueReader
    ) async -> Entry {
        var entry = Entry(characteristic: characteristic)
        for descriptor in characteristic.descriptors {
            entry.descriptors.append((descriptor.uuid, try? await peripheral.readValue(for: descriptor)))
        }
        guard characteristic.properties.contains(.read) else { return entry }
        do {
            let bytes = try await peripheral.readValue(for: characteristic.id)
            entry.value = .success(bytes)
            entry.meaning = reader.words(bytes, of: characteristic)
        } catch {
            entry.value = .failure(error as? BluetoothError ?? BluetoothError(.other, "\(error)"))
        }
        return entry
    }

    // MARK: - Text

    private func text(_ findings: Findings) -> String {
        var lines = ["\(client.address)\(findings.name.map { " \"\(Terminal.harmless($0))\"" } ?? "")"]
        let profiles = findings.profiles
        lines.append(profiles.isEmpty ? "no profile serves it" : "served by \(profiles.joined(separator: ", "))")
        for (service, entries) in findings.services {
            lines += ["", ProfileFacts.named(service.uuid)]
            for entry in entries { lines += self.lines(entry) }
        }
        return lines.joined(separator: "\n")
    }

    private func lines(_ entry: Entry) -> [String] {
        let properties = entry.characteristic.properties.words.joined(separator: ", ")
        var lines = ["  \(ProfileFacts.named(entry.characteristic.uuid))  [\(properties)]"]
        switch entry.value {
        case .success(let bytes): lines.append("      \(ByteText.words(bytes))")
        case .failure(let error): lines.append("      cannot be read: \(error.detail)")
        case nil: break
        }
        if let meaning = entry.meaning { lines.append("      = \(Terminal.harmless(meaning))") }
        for (uuid, bytes) in entry.descriptors {
            lines.append("      \(ProfileFacts.named(uuid))\(bytes.map { ": " + ByteText.words($0) } ?? "")")
        }
        return lines
    }

    // MARK: - JSON

    private func json(_ findings: Findings) -> String {
        JSONWriter.text { writer in
            writer.beginObject()
            writer.member("address", client.address.description)
            writer.member("name", findings.name)
            writer.key("profiles")
            writer.array(findings.profiles) { $0.string($1) }
            writer.key("services")
            writer.beginArray()
            for (service, entries) in findings.services { write(service, entries, to: &writer) }
            writer.endArray()
            writer.endObject()
        }
    }

    private func write(_ service: Service, _ entries: [Entry], to writer: inout JSONWriter) {
        writer.beginObject()
        begin(service.uuid, to: &writer)
        writer.key("characteristics")
        writer.array(entries) { write($1, to: &$0) }
        writer.endObject()
    }

    private func write(_ entry: Entry, to writer: inout JSONWriter) {
        writer.beginObject()
        begin(entry.characteristic.uuid, to: &writer)
        writer.key("properties")
        writer.array(entry.characteristic.properties.words) { $0.string($1) }
        switch entry.value {
        case .success(let bytes): writer.member("hex", Hexadecimal.text(bytes.span))
        case .failure(let error): writer.member("error", error.detail)
        case nil: break
        }
        writer.member("meaning", entry.meaning)
        writer.key("descriptors")
        writer.beginArray()
        for (uuid, bytes) in entry.descriptors {
            writer.beginObject()
            begin(uuid, to: &writer)
            writer.member("hex", bytes.map { Hexadecimal.text($0.span) })
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }

    private func begin(_ uuid: BluetoothUUID, to writer: inout JSONWriter) {
        writer.member("uuid", uuid.description)
        writer.member("name", uuid.assignedName)
    }
}
