import GattherdModel
import GattherdOutputs
import GattherdSync
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetDatabaseTests {
    @Test func `the schema is installed once, by any number of commands at the same time`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...10))
        let results = try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    let url = try Centre.url(centre.server.port, user: "postgres")
                    return try await FleetDatabase(PostgresClient(url), url: url).install(isNew: true)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let version = FleetDatabase.steps.count
        #expect(results == Array(repeating: FleetDatabase.Installation(before: version, now: version), count: 4))
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "10")
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...20))
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "20")
    }

    @Test func `a command sees the changes of the one before, whatever the default isolation level is`() async throws {
        let centre = try await Centre()
        _ = try await centre.rows("ALTER DATABASE fleet SET default_transaction_isolation = 'serializable'")
        let other = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await other.run("BEGIN")
        _ = try await other.run("SELECT pg_advisory_xact_lock(1195463752, 0)")
        _ = try await other.run("INSERT INTO gattherd.gateway (name, role) VALUES ('attic', 'gattherd_attic')")
        // The setting is that of new connections.
        let fleet = try Centre(server: centre.server).fleet
        async let added = fleet.add(gateway: "attic")
        while try await centre.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {}
        _ = try await other.run("COMMIT")
        #expect(try await added.role == "gattherd_attic")
        other.close()
    }

    @Test func `an upgrade recreates missing functions and lets the gateways call them`() async throws {
        let centre = try await Centre()
        _ = try await centre.fleet.add(gateway: "attic")
        _ = try await centre.rows("DROP FUNCTION gattherd.exchange_leases CASCADE")
        let version = FleetDatabase.steps.count
        #expect(try await centre.fleet.install(isNew: false) == .init(before: version, now: version))
        let mayCall =
            "SELECT has_function_privilege('gattherd_attic', oid, 'EXECUTE') FROM pg_proc "
            + "WHERE proname = 'exchange_leases'"
        #expect(try await centre.value(mayCall) == "t")
    }

    @Test func `an upgrade runs the steps that the schema lacks, once, and keeps its rows`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        let version = FleetDatabase.steps.count
        let steps = FleetDatabase.steps + ["ALTER TABLE gattherd.gateway ADD place text"]
        for before in [version, version + 1] {
            let result = try await centre.fleet.install(isNew: false, steps: steps)
            #expect(result == .init(before: before, now: version + 1))
        }
        try await sink.deliver(Entries.numbered(1...20))
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "20")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.gateway WHERE place IS NULL") == "1")
    }

    @Test func `an upgrade by another role leaves everything to the owner of the schema`() async throws {
        let server = try await PostgresServer()
        try await server.start()
        try await server.rows("CREATE ROLE keeper LOGIN CREATEROLE PASSWORD 'secret'")
        try await server.rows("CREATE DATABASE \(Centre.database) OWNER keeper")
        let url = try Centre.url(server.port, user: "keeper")
        _ = try await FleetDatabase(PostgresClient(url) { "secret" }, url: url).install(isNew: true)
        let centre = try Centre(server: server)
        _ = try await centre.rows("DROP FUNCTION gattherd.runs")
        let steps = FleetDatabase.steps + ["CREATE TABLE gattherd.place (name text)"]
        _ = try await centre.fleet.install(isNew: false, steps: steps)
        let owners = """
            SELECT DISTINCT pg_get_userbyid(o.owner) FROM (
                SELECT proowner AS owner, pronamespace AS namespace FROM pg_proc
                UNION ALL SELECT relowner, relnamespace FROM pg_class
            ) AS o JOIN pg_namespace n ON n.oid = o.namespace AND n.nspname = 'gattherd'
            """
        #expect(try await centre.rows(owners) == [["keeper"]])
        #expect(try await centre.sink(of: "attic").deliver(Entries.numbered(1...10)).isEmpty)
    }

    @Test func `a schema from before the first release is refused with a remedy`() async throws {
        let centre = try await Centre()
        let newest = FleetDatabase.newestColumn
        _ = try await centre.rows("ALTER TABLE \(newest.table) RENAME COLUMN \(newest.name) TO former")
        for (version, isNew) in [(1, true), (1, false), (4, false)] {
            _ = try await centre.rows("UPDATE gattherd.version SET n = \(version)")
            let failure = await #expect(throws: FleetDatabase.Failure.self) {
                _ = try await centre.fleet.install(isNew: isNew)
            }
            #expect(failure?.description.contains("drop the schema gattherd and run: gattherd fleet init") == true)
        }
    }

    @Test func `a newer schema, a foreign encoding and an empty database are refused with a remedy`() async throws {
        let centre = try await Centre()
        _ = try await centre.rows("UPDATE gattherd.version SET n = 99")
        let newer = await #expect(throws: FleetDatabase.Failure.self) {
            _ = try await centre.fleet.install(isNew: true)
        }
        #expect(newer?.description.contains("it is of version 99, this gattherd knows 1: use a newer one") == true)
        try await centre.server.rows("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        for (name, isNew, words) in [("latin", true, "ENCODING 'UTF8'"), ("postgres", false, "gattherd fleet init")] {
            let url = try PostgresURL("postgresql://postgres@127.0.0.1:\(centre.server.port)/\(name)")
            let fleet = FleetDatabase(PostgresClient(url), url: url)
            let failure = await #expect(throws: FleetDatabase.Failure.self) {
                _ = try await fleet.install(isNew: isNew)
            }
            #expect(failure?.description.contains(words) == true)
        }
    }

    @Test func `a gateway that is added again gets a new password, and the old one ends`() async throws {
        let centre = try await Centre()
        let old = try await centre.fleet.add(gateway: "attic")
        let new = try await centre.fleet.add(gateway: "attic")
        #expect(old.role == "gattherd_attic" && old.password != new.password && new.password.count == 32)
        #expect(try await centre.sink(of: "attic", new).cursor(in: .test) == 0)
        let error = await #expect(throws: OutputFault.self) {
            _ = try await centre.sink(of: "attic", old).cursor(in: .test)
        }
        #expect(error?.kind == .misconfigured)
        let stored = try await centre.server.value("SELECT rolpassword FROM pg_authid WHERE rolname = 'gattherd_attic'")
        #expect(stored.hasPrefix("SCRAM-SHA-256$"))
    }

    @Test func `a command whose COMMIT has no answer says that the change may have been made`() async throws {
        let centre = try await Centre()
        _ = try await centre.rows(
            """
            CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON gattherd.gateway DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION wait()
            """
        )
        let task = Task { try await centre.fleet.add(gateway: "attic") }
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        try await eventually { try await centre.value(waiting) == "1" }
        await centre.server.kill()
        let failure = await #expect(throws: FleetDatabase.Failure.self) { _ = try await task.value }
        #expect(failure?.description.contains("may have been made, so repeat the command") == true)
    }

    @Test func `gateways are added at the same time, also during an upgrade`() async throws {
        let centre = try await Centre()
        try await withThrowingTaskGroup { group in
            for number in 0..<12 {
                let url = try Centre.url(centre.server.port, user: "postgres")
                group.addTask {
                    let fleet = FleetDatabase(PostgresClient(url), url: url)
                    for round in 0..<3 { _ = try await fleet.add(gateway: "gateway-\(number)-\(round)") }
                    if number == 0 { _ = try await fleet.install(isNew: false) }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await centre.value("SELECT count(*) FROM gattherd.gateways") == "36")
    }

    @Test func `a report without entries is a sign of life, and has the devices`() async throws {
        let centre = try await Centre()
        let record = DeviceRecord(device: "tag", address: "C0:FF:EE:00:00:01", name: nil, profiles: ["a", "b"])
        let devices = [SeenDevice(record, first: Timestamp(microseconds: 0), last: Entries.time)]
        let sink = try await centre.sink(of: "attic", devices: devices)
        _ = try await sink.cursor(in: .test)
        let row = try await centre.rows("SELECT * FROM gattherd.devices")
        #expect(
            row == [
                [
                    "attic", "tag", "C0:FF:EE:00:00:01", "NULL", "a,b", "1970-01-01T00:00:00.000000Z",
                    "2026-11-21T03:20:05.123456Z",
                ]
            ]
        )
        _ = try await centre.rows("UPDATE gattherd.gateway SET last_seen = NULL; DELETE FROM gattherd.device")
        await sink.report()
        let state = "SELECT last_seen > now() - interval '1 minute', version FROM gattherd.gateways"
        #expect(try await centre.rows(state) == [["t", "1.2.3"]])
        #expect(try await centre.rows("SELECT * FROM gattherd.devices").isEmpty, "unchanged devices are not sent")
        _ = try await sink.cursor(in: .test)
        #expect(try await centre.rows("SELECT * FROM gattherd.devices").count == 1, "a fault may have lost them")
    }

    @Test func `devices that cannot be read now stay at the centre`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let url = try Centre.url(centre.server.port)
        let record = DeviceRecord(device: "tag", address: "C0:FF:EE:00:00:01", name: nil, profiles: ["a"])
        let known = Locked<[SeenDevice]?>([SeenDevice(record, first: Entries.time, last: Entries.time)])
        let client = PostgresClient(url, user: credentials.role) { credentials.password }
        let sink = PostgresSink(client, url: url, gateway: "attic", version: "1", devices: { known.withLock(\.self) })
        _ = try await sink.cursor(in: .test)
        for (devices, count) in [([SeenDevice]?.none, "1"), ([], "0")] {
            known.withLock { $0 = devices }
            await sink.report()
            #expect(try await centre.value("SELECT count(*) FROM gattherd.devices") == count)
        }
    }

    @Test func `gateways with long names that begin alike have roles of their own`() async throws {
        let centre = try await Centre()
        let names = ["a", "b"].map { String(repeating: "x", count: 63) + $0 }
        var roles: Set<String> = []
        for name in names {
            let credentials = try await centre.fleet.add(gateway: name)
            roles.insert(credentials.role)
            try await centre.sink(of: name, credentials).deliver(Entries.numbered(1...5))
        }
        #expect(roles.count == 2 && roles.allSatisfy { $0.utf8.count == 63 })
        let counts = try await centre.rows("SELECT gateway, count(*) FROM gattherd.history GROUP BY 1 ORDER BY 1")
        #expect(counts == names.map { [$0, "5"] })
        #expect(FleetRole.name(of: String(names[0].prefix(54))) == "gattherd_" + names[0].prefix(54))
    }

    @Test func `of a thousand gateways fifty connect at once`() async throws {
        let centre = try await Centre()
        var gateways: [(name: String, credentials: FleetDatabase.Credentials)] = []
        for number in 1...1000 {
            let name = "gateway-\(number)"
            gateways.append((name, try await centre.fleet.add(gateway: name)))
        }
        try await withThrowingTaskGroup { group in
            for gateway in gateways.filter({ $0.name.hasSuffix("0") }).prefix(50) {
                let sink = try centre.sink(of: gateway.name, gateway.credentials)
                group.addTask { try await sink.deliver(Entries.numbered(1...100), batch: 20) }
            }
            for try await faults in group { #expect(faults.isEmpty, "\(faults.first?.detail ?? "")") }
        }
        let counts = try await centre.rows("SELECT count(*), count(DISTINCT gateway) FROM gattherd.history")
        #expect(counts == [["5000", "50"]])
        #expect(try await centre.value("SELECT count(*) FROM gattherd.gateways WHERE last_seen IS NULL") == "950")
    }

    @Test func `a reader that may see the views sees the fleet`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...10))
        _ = try await centre.rows(
            """
            CREATE ROLE reader LOGIN PASSWORD 'reader'; GRANT USAGE ON SCHEMA gattherd TO reader;
            GRANT SELECT ON gattherd.history, gattherd.history_minutes, gattherd.latest TO reader
            """
        )
        let url = try Centre.url(centre.server.port, user: "reader")
        let client = PostgresClient(url) { "reader" }
        let rows = try await client.run("SELECT gateway, time, value FROM gattherd.latest")
        #expect(rows == [["attic", "2026-11-21T03:20:05.223456Z", "10"]])
        await #expect(throws: PostgresError.self) { _ = try await client.run("SELECT * FROM gattherd.gateway") }
    }

    @Test func `rows older than the retention are dropped by partitions, and their summaries stay`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let now = try #require(Int64(try await centre.value("SELECT floor(extract(epoch FROM now()) * 1000000)")))
        let days = (0..<6).map { day in
            Entries.reading(
                Int64(6 - day),
                at: Timestamp(microseconds: now - Int64(day) * 86_400_000_000),
                (0, .integer(1))
            )
        }
        try await sink.deliver(days.reversed())
        _ = try await centre.rows(
            """
            UPDATE gattherd.retention SET keep = '3 days' WHERE kind = 'samples';
            UPDATE gattherd.extent SET came = came - interval '4 days'; UPDATE gattherd.upkeep SET done = '-infinity'
            """
        )
        while try await centre.value("SELECT gattherd.maintain()") == "t" {}
        let left = try #require(Int(try await centre.value("SELECT count(*) FROM gattherd.history")))
        #expect((3...4).contains(left))
        #expect(try await centre.value("SELECT sum(n) FROM gattherd.history_minutes") == "6")
        let old = Entries.reading(7, at: Timestamp(microseconds: now - 20 * 86_400_000_000), (0, .integer(1)))
        try await sink.deliver([old])
        #expect(try await centre.value("SELECT sum(n) FROM gattherd.history_hours") == "7")
    }

    @Test func `clocks that are wrong by years make no partitions, and a day's rows move when it comes`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let far = (1...400).map { day in
            Entries.reading(Int64(day), at: Timestamp(microseconds: Int64(day) * 10 * 86_400_000_000), (0, .integer(1)))
        }
        _ = try await sink.cursor(in: .test)
        let partitions = "SELECT count(*) FROM pg_class WHERE relname ~ '^(sample|minute)_[0-9]' AND relkind = 'r'"
        let before = try await centre.value(partitions)
        try await sink.deliver(far)
        #expect(try await centre.value(partitions) == before)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.sample_far") == "400")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.sample_other") == "0")
        _ = try await centre.rows(
            """
            INSERT INTO gattherd.sample_other (ts, seq, value, journal, series)
            SELECT floor(extract(epoch FROM now() - interval '9 days') * 1000000), 0, 1, 1, 1;
            SELECT gattherd.make_blocks(ARRAY[floor(extract(epoch FROM now() - interval '9 days') * 1000000)::bigint])
            """
        )
        #expect(try await centre.value("SELECT count(*) FROM gattherd.sample_other") == "0")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.sample") == "401")
    }

    @Test func `a reader of the default partition does not hold up the gateways`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let url = try Centre.url(centre.server.port, user: "postgres")
        let reader = PostgresClient(url)
        _ = try await reader.perform(within: .seconds(60)) { (connection, call) throws(PostgresError) in
            try connection.script("BEGIN; SELECT count(*) FROM gattherd.history") { call.mayContinue }
        }
        let now = try #require(Int64(try await centre.value("SELECT floor(extract(epoch FROM now()) * 1000000)")))
        let start = Timestamp(microseconds: now - 9 * 86_400_000_000)
        #expect(try await sink.deliver(Entries.numbered(1...10, from: start)).isEmpty)
        reader.close()
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "10")
    }
}
