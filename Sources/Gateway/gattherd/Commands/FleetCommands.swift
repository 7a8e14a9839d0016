import CLinux
import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdPostgres
import GattherdSync
import Glibc

extension CommandSpec {
    static let fleetOptions = FleetAccess.options
    private static let fleetTableOptions = fleetOptions + [.flag("json", "print one JSON array of objects")]
    static let fleetExits: [CommandFailure.Code: String] = [
        .unavailable: "the database cannot be reached, or refuses the command"
    ]
    static let fleetURL = PositionalSpec(name: "URL")
    static let fleetURLHelp = """
        URL is postgresql://USER@HOST/DATABASE, without a password. The server's certificate is verified unless HOST is \
        this one.
        """

    static let fleetInit = CommandSpec(
        name: "fleet init",
        summary: "prepare a PostgreSQL database for the history of many gateways",
        positionals: [fleetURL],
        options: fleetOptions,
        details: """
            \(fleetURLHelp) The schema 'gattherd' is created in one transaction. The command may be repeated. USER owns
            the tables; it must be allowed to create schemas, and to create roles for 'fleet add'.
            """,
        exits: fleetExits,
        examples: ["gattherd fleet init postgresql://postgres@localhost/gattherd"],
        run: { (arguments) throws(CommandFailure) in try await FleetCommands(arguments).install(isNew: true) }
    )

    static let fleetUpgrade = CommandSpec(
        name: "fleet upgrade",
        summary: "bring the central database to the version of this gattherd",
        positionals: [fleetURL],
        options: fleetOptions,
        details: """
            \(fleetURLHelp) Upgrade the central database first, then the gateways. There is no way back. Rows that have
            no partition yet are moved afterwards, day by day. If that is interrupted, repeat the command.
            """,
        exits: fleetExits,
        examples: ["gattherd fleet upgrade postgresql://postgres@localhost/gattherd"],
        run: { (arguments) throws(CommandFailure) in try await FleetCommands(arguments).install(isNew: false) }
    )

    static let fleetAdd = CommandSpec(
        name: "fleet add",
        summary: "let a gateway write to the central database, or give it a new password",
        positionals: [fleetURL, PositionalSpec(name: "GATEWAY")],
        options: fleetOptions + [.value("output", "FILE", "write the password to a new file, instead of printing it")],
        details: """
            \(fleetURLHelp) GATEWAY is the name of the gateway in its configuration. Its role is gattherd_GATEWAY, which can
            only add to the history of this gateway. The password is not stored anywhere else. A gateway that is there
            already gets a new password, and the old one ends.
            """,
        exits: fleetExits.merging([.cannotCreate: "FILE already exists, or cannot be created"]) { first, _ in first },
        examples: ["gattherd fleet add postgresql://postgres@localhost/gattherd attic --output attic-password"],
        run: { (arguments) throws(CommandFailure) in try await FleetCommands(arguments).add() }
    )

    static let fleetStatus = CommandSpec(
        name: "fleet status",
        summary: "show the gateways of the central database",
        positionals: [fleetURL],
        options: fleetTableOptions,
        details: """
            \(fleetURLHelp) LAST SEEN is the time of the last batch or report; a gateway without new entries reports once
            a minute. LAG counts the numbers of the journal that the centre did not have then. CLOCK is the gateway's
            clock minus that of the database, in seconds.
            """,
        json: """
            {"gateway", "version", "last_seen", "lag", "clock", "devices", "errors", "gaps", "problem"}

            "last_seen" is RFC 3339 in UTC, "clock" seconds. What is not known is null.
            """,
        exits: fleetExits,
        examples: ["gattherd fleet status postgresql://reader@db.example.com/gattherd"],
        run: { (arguments) throws(CommandFailure) in try await FleetCommands(arguments).status() }
    )

    static let fleetDevices = CommandSpec(
        name: "fleet devices",
        summary: "show the devices of all gateways",
        positionals: [fleetURL],
        options: fleetTableOptions,
        details: """
            \(fleetURLHelp) OWNER is the gateway that has the lease of the device. RSSI is in dBm: that of the gateway's
            bid, or without leases of the last advertisement with a reading.
            """,
        json: """
            {"device", "gateway", "owner", "address", "name", "profiles", "rssi", "first_seen", "last_seen"}

            Times are RFC 3339 in UTC, "rssi" dBm. What is not known is null.
            """,
        exits: fleetExits,
        examples: ["gattherd fleet devices postgresql://reader@db.example.com/gattherd"],
        run: { (arguments) throws(CommandFailure) in try await FleetCommands(arguments).devices() }
    )

    static let fleetWhy = CommandSpec(
        name: "fleet why",
        summary: "show which gateways heard a device, which one owns it, and why",
        positionals: [fleetURL, PositionalSpec(name: "DEVICE")],
        options: fleetOptions,
        details: """
            \(fleetURLHelp) DEVICE is a name or an address. The first table has the streams in the history. With leases,
            the second one has the owner with the reason, and the third one the bids of the gateways.
            """,
        exits: fleetExits.merging([.data: "the centre knows no such device"]) { first, _ in first },
        examples: ["gattherd fleet why postgresql://reader@db.example.com/gattherd strap"],
        run: { (arguments) throws(CommandFailure) in try await FleetCommands(arguments).why() }
    )
}

/// Commands on the central database of a fleet.
struct FleetCommands {
    let arguments: Arguments
    let fleet: FleetDatabase
    private let url: PostgresURL

    init(_ arguments: Arguments) throws(CommandFailure) {
        self.arguments = arguments
        let access = try FleetAccess(arguments, arguments.positional(0) ?? "")
        (fleet, url) = (access.fleet, access.url)
    }

    func install(isNew: Bool) async throws(CommandFailure) {
        do throws(FleetDatabase.Failure) {
            var line = ProgressLine("days", isBusy: false, stride: 1)
            let result = try await fleet.install(
                isNew: isNew,
                progress: { moved, all in line.advance { Double(moved) / Double(all) } }
            )
            line.finish()
            let change = result.before == result.now ? "is of version" : "now has version"
            Terminal.say("the schema in \(url) \(change) \(result.now)")
            if let rows = result.unmoved { throw FleetDatabase.Failure(Self.words(rows)) }
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
    }

    private static func words(_ rows: FleetDatabase.UnmovedRows) -> String {
        let rest = rows.days.map { "rows of \($0) partitions could not be moved" } ?? "the partitions are not complete"
        return "\(rest); repeat this command: \(rows.problem)"
    }

    func add() async throws(CommandFailure) {
        let gateway = arguments.positional(1) ?? ""
        guard Slug.isValid(gateway) else {
            throw arguments.misuse("GATEWAY has 1 to 64 of a-z, 0-9, '_' and '-'")
        }
        let output = arguments.value("output")
        let file = if let output { try NewSecret(output) } else { NewSecret?.none }
        let password = FleetDatabase.makePassword()
        do throws(FleetDatabase.Failure) {
            // A failure must not end the old password while the new one is lost.
            try file?.write(password)
            let credentials = try await fleet.add(gateway: gateway, password: password)
            if let file {
                try file.place()
            } else {
                Terminal.say(password)
            }
            let place = output.map { "its password is in \($0)" } ?? "its password is shown only now"
            Terminal.printError("gattherd: the role \(credentials.role) writes the history of '\(gateway)'; \(place)")
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
    }

    func status() async throws(CommandFailure) {
        try await table(
            ["gateway", "version", "last_seen", "lag", "clock", "devices", "errors", "gaps", "problem"],
            numbers: ["lag", "clock", "devices", "errors", "gaps"],
            """
            SELECT gateway, version, to_char(last_seen AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), lag,
                round(clock_offset::numeric, 1), devices, errors, gaps, problem
            FROM gattherd.gateways WHERE problem IS DISTINCT FROM 'removed' ORDER BY gateway
            """
        )
        try await warnOfMissingPartitions()
        try await warnOfOverdueWork()
        try await warnOfScarceConnections()
    }

    func devices() async throws(CommandFailure) {
        try await table(
            ["device", "gateway", "owner", "address", "name", "profiles", "rssi", "first_seen", "last_seen"],
            numbers: ["rssi"],
            """
            SELECT device, gateway, o.owner, coalesce(d.address, b.address), d.name, d.profiles,
                coalesce(b.rssi, s.value), d.first_seen, d.last_seen
            FROM gattherd.devices d FULL JOIN (
                SELECT DISTINCT ON (i.gateway, i.device) i.* FROM gattherd.bids i
                ORDER BY i.gateway, i.device, i.updated DESC
            ) b USING (device, gateway)
            LEFT JOIN (
                SELECT DISTINCT ON (l.gateway, l.device) l.gateway, l.device, l.value FROM gattherd.latest l
                WHERE l.metric = 'rssi' AND l.source = 'advert' ORDER BY l.gateway, l.device, l.ts DESC
            ) s USING (device, gateway)
            LEFT JOIN (SELECT l.address, l.owner FROM gattherd.leases l WHERE l.state = 'owned') o
                ON o.address = coalesce(d.address, b.address)
            ORDER BY device, gateway
            """
        )
    }

    func why() async throws(CommandFailure) {
        let name = arguments.positional(1) ?? ""
        let device = [name, BluetoothAddress(anyNotation: name)?.description ?? name]
        try await expectKnown(name, device)
        try await table(
            ["gateway", "stream", "profile", "first", "last"],
            """
            SELECT gateway, stream, profile, gattherd.rfc3339(min(first_ts)), gattherd.rfc3339(max(last_ts))
            FROM gattherd.series WHERE device = $1
                OR (gateway, device) IN (SELECT d.gateway, d.device FROM gattherd.devices d WHERE d.address = $2)
            GROUP BY 1, 2, 3 ORDER BY max(last_ts) DESC
            """,
            device
        )
        try await lease(of: device)
    }

    /// Throws an error if neither the history nor the leases have a device with this name or address.
    private func expectKnown(_ name: String, _ device: [String]) async throws(CommandFailure) {
        let known = try await rows(
            """
            SELECT device, address FROM gattherd.devices UNION SELECT device, address FROM gattherd.leases
            UNION SELECT device, NULL FROM gattherd.series ORDER BY 1
            """
        )
        guard !known.contains(where: { !Set($0.compactMap(\.self)).isDisjoint(with: device) }) else { return }
        let names = Array(Set(known.compactMap { $0.first ?? nil })).sorted()
        guard let words = UnknownName(name, "device", among: names) else { return }
        throw CommandFailure(.data, "gattherd: \(url): \(words)")
    }

    /// Prints the lease of a device with this name or address, and the bids for it; nothing without leases.
    private func lease(of device: [String]) async throws(CommandFailure) {
        try await table(
            ["owner", "lease", "epoch", "since", "previous", "reason"],
            """
            SELECT owner, state, epoch, to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), previous, reason
            FROM gattherd.leases WHERE device = $1 OR address = $2
            """,
            device,
            isOptional: true
        )
        try await table(
            ["gateway", "standing", "rssi", "problem", "bid"],
            """
            SELECT gateway, standing, rssi, problem,
                to_char(updated AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM gattherd.bids WHERE device = $1 OR address = $2 ORDER BY rssi DESC NULLS LAST, gateway
            """,
            device,
            isOptional: true
        )
    }

    // Prints the rows as a table, or with `--json` as objects with these members, of which some are numbers.
    // An optional table is left out without rows, and follows an empty line.
    private func table(
        _ names: [String],
        numbers: Set<String> = [],
        _ sql: String,
        _ values: [String] = [],
        isOptional: Bool = false
    ) async throws(CommandFailure) {
        let rows = try await rows(sql, values)
        guard !isOptional || !rows.isEmpty else { return }
        guard !arguments.has("json") else { return Terminal.say(Self.json(names, numbers, rows)) }
        if isOptional { Terminal.say("") }
        let header = names.map { $0.uppercased().replacing("_", with: " ") }
        let cells = rows.map { row in names.indices.map { row.indices.contains($0) ? row[$0] ?? "-" : "-" } }
        Terminal.say(TextTable(header, cells).lines.joined(separator: "\n"))
    }

    private func rows(_ sql: String, _ values: [String] = []) async throws(CommandFailure) -> [[String?]] {
        do throws(FleetDatabase.Failure) {
            return try await fleet.rows(sql, values)
        } catch {
            let isForbidden = "\(error)".contains("permission denied for view")
            let remedy = isForbidden ? "; grant SELECT on it, as in 'Roles' of docs/fleet.md" : ""
            throw CommandFailure(.unavailable, "gattherd: \(error)\(remedy)")
        }
    }

    private static func json(_ names: [String], _ numbers: Set<String>, _ rows: [[String?]]) -> String {
        JSONWriter.text { writer in
            writer.beginArray()
            for row in rows {
                writer.beginObject()
                for (name, cell) in zip(names, row) {
                    writer.key(name)
                    let number = numbers.contains(name) ? cell.flatMap { Double($0) } : nil
                    if let number { writer.value(number.sample) } else { writer.value(cell.map { .text($0) } ?? .null) }
                }
                writer.endObject()
            }
            writer.endArray()
        }
    }
}

extension Double {
    /// An integer if it is one.
    fileprivate var sample: SampleValue { Int64(exactly: self).map { .integer($0) } ?? .real(self) }
}

/// A new file with a secret, which only its owner may read.
private struct NewSecret {
    private let draft: FileDraft

    /// Creates the draft, before anything is changed elsewhere.
    init(_ path: String) throws(CommandFailure) {
        do throws(FileError) {
            var status = stat()
            guard unsafe lstat(path, &status) != 0 else { throw FileError(EEXIST, path) }
            draft = try FileDraft(of: path)
        } catch {
            let remedy = error.code == EEXIST ? "remove it, or choose another --output" : "choose another --output"
            throw CommandFailure(.cannotCreate, "gattherd: \(path): \(error.reason); \(remedy)")
        }
    }

    /// Writes the secret into the draft, and waits until it is on the disk.
    func write(_ secret: String) throws(FleetDatabase.Failure) {
        do throws(FileError) {
            try draft.write(Array("\(secret)\n".utf8))
            try draft.sync()
        } catch {
            throw FleetDatabase.Failure("\(draft.target): \(error.reason)")
        }
    }

    /// Gives the file its name, once the secret is that of the role.
    func place() throws(FleetDatabase.Failure) {
        do throws(FileError) {
            try draft.create()
        } catch {
            let advice = "the password has changed, so repeat the command with another --output"
            throw FleetDatabase.Failure("\(draft.target): \(error.reason); \(advice)")
        }
    }
}
