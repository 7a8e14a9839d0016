import Foundation
import TestKit
import Testing

/// `gattherd fleet` and `gattherd history --fleet` on a real PostgreSQL.
@Suite(
    .enabled(if: PostgresServer.programs != nil, "PostgreSQL is missing; run: make test-servers"),
    .timeLimit(.minutes(3))
)
struct FleetCommandTests {
    /// Two readings of a gateway: the second is two minutes later.
    private static let readings = """
        SET SESSION AUTHORIZATION gattherd_attic;
        SELECT gattherd.position(repeat('0', 32), NULL, 'attic');
        SELECT gattherd.report('1.0', 2, 0, 0, '{tag}', '{C0:FF:EE:00:00:01}', '{Tag}', '{bthome}', '{0}', '{0}');
        SELECT gattherd.append(repeat('0', 32), 0, 2,
            '{tag,tag}', '{bthome,bthome}', '{bthome,bthome}', '{temperature,rssi}', '{°C,dBm}', '{gauge,gauge}',
            '{advert,advert}', '{1795231200000000,1795231200000000}',
            '{1,1,2}', '{1795231200000000,1795231200000000,1795231320000000}', '{1,2,1}', '{21.5,-70,22.5}',
            '{NULL,NULL,NULL}', '{NULL,NULL,NULL}', '{NULL,NULL,NULL}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
            '{}', '{}', '{}', '{}', '{}', '{}', '{}', '1.0', 5, 0, 0)
        """

    private let server: PostgresServer
    private let url: String

    init() async throws {
        server = try await PostgresServer()
        try await server.start()
        try await server.rows("CREATE DATABASE fleet")
        url = "postgresql://postgres@127.0.0.1:\(server.port)/fleet"
    }

    private func run(_ words: String...) async throws -> (code: Int32, text: String, errors: String) {
        let folder = try TemporaryFolder()
        let errors = folder.file("errors")
        let (code, text) = try await Programs.run(Programs.path("gattherd"), words, errors: errors)
        return (code, text, try String(contentsOfFile: errors, encoding: .utf8))
    }

    @Test func `tables and history of the fleet are printed for people and as JSON`() async throws {
        #expect(try await run("fleet", "init", url).code == 0)
        #expect(try await run("fleet", "add", url, "attic").text.count == 33)
        try await server.rows(Self.readings, database: "fleet")

        let status = try await run("fleet", "status", url)
        #expect(status.text.hasPrefix("GATEWAY  VERSION  LAST SEEN"))
        let json = try await run("fleet", "status", url, "--json").text
        #expect(json.hasPrefix(#"[{"gateway":"attic","version":"1.0","last_seen":"20"#))
        #expect(json.contains(#""lag":3,"#) && json.contains(#""devices":1,"errors":0,"gaps":0,"problem":null}]"#))
        let devices = try await run("fleet", "devices", url, "--json").text
        let named = #"[{"device":"tag","gateway":"attic","owner":null,"address":"C0:FF:EE:00:00:01","name":"Tag","#
        #expect(devices.hasPrefix(named + #""profiles":"bthome","rssi":-70,"#), "\(devices)")

        let rows = try await run("history", "--fleet", url, "--metric", "temperature", "--format", "csv").text
        let first = "attic,2026-11-21T03:20:00.000000Z,1,tag,temperature,21.5,°C,advert,bthome\n"
        let second = "attic,2026-11-21T03:22:00.000000Z,2,tag,temperature,22.5,°C,advert,bthome\n"
        #expect(rows == "gateway,time,seq,device,metric,value,unit,source,stream\n" + first + second)
        let since = ["--since", "2026-11-21T03:21:00Z", "--format", "json"]
        let later = try await run("history", "--fleet", url, since[0], since[1], since[2], since[3]).text
        #expect(later.hasPrefix(#"{"gateway":"attic","time":"2026-11-21T03:22:00"#) && later.count { $0 == "\n" } == 1)
        let hours = try await run("history", "--fleet", url, "--every", "1h", "--metric", "temperature").text
        #expect(hours.contains("temperature") && hours.contains(" 22.0 "), "\(hours)")
        let plot = try await run("history", "--fleet", url, "--format", "plot", "--metric", "temperature")
        #expect(plot.code == 0 && plot.text.contains("attic/tag temperature"), "\(plot)")
        for address in ["C0:FF:EE:00:00:01", "c0-ff-ee-00-00-01"] {
            let found = try await run("history", "--fleet", url, "--device", address, "--metric", "temperature")
            #expect(found.text.contains("21.5") && found.text.contains("22.5"), "\(found)")
            #expect(try await run("fleet", "why", url, address).text.contains("attic"))
        }
        let unknown = try await run("fleet", "why", url, "tga")
        #expect(unknown.code == 65 && unknown.text.isEmpty)
        #expect(unknown.errors.contains("there is no device 'tga'; did you mean 'tag'?"), "\(unknown)")
        let none = try await run("history", "--fleet", url, "--since", "2027-01-01")
        #expect(none.code == 0 && none.errors == "gattherd: no samples were found\n", "\(none)")
        await server.stop()
    }

    @Test func `a password that cannot be written to its file ends no other one`() async throws {
        #expect(try await run("fleet", "init", url).code == 0)
        #expect(try await run("fleet", "add", url, "attic").code == 0)
        let stored = "SELECT rolpassword FROM pg_authid WHERE rolname = 'gattherd_attic'"
        let before = try await server.value(stored)
        let folder = try TemporaryFolder()
        // Files may have no content, as on a full disk.
        let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""
        let command = [Programs.path("gattherd"), "fleet", "add", url, "attic", "--output", folder.file("p")]
        #expect(try await Programs.run("/bin/sh", ["-c", script] + command).0 != 0)
        #expect(try await server.value(stored) == before)
        await server.stop()
    }

    @Test func `a device whose peripheral was replaced is listed once, with the newest bid`() async throws {
        #expect(try await run("fleet", "init", url).code == 0)
        #expect(try await run("fleet", "add", url, "attic").code == 0)
        try await server.rows(
            """
            INSERT INTO gattherd.lease (address, device) VALUES ('C0:FF:EE:00:00:01', 'tag'),
                ('C0:FF:EE:00:00:02', 'tag');
            INSERT INTO gattherd.lease_bid (address, gateway, device, standing, rssi, updated)
            VALUES ('C0:FF:EE:00:00:01', 1, 'tag', 'gone', NULL, now() - interval '1 day'),
                ('C0:FF:EE:00:00:02', 1, 'tag', 'steady', -61, now())
            """,
            database: "fleet"
        )
        let devices = try await run("fleet", "devices", url, "--json").text
        #expect(devices.components(separatedBy: #""device":"tag""#).count == 2, "\(devices)")
        #expect(devices.contains(#""address":"C0:FF:EE:00:00:02""#) && devices.contains(#""rssi":-61"#), "\(devices)")
        await server.stop()
    }

    @Test func `a removed gateway is in no status until it is added again`() async throws {
        #expect(try await run("fleet", "init", url).code == 0)
        for name in ["attic", "cellar"] { #expect(try await run("fleet", "add", url, name).code == 0) }
        let removed = try await run("fleet", "remove", url, "attic")
        #expect(removed.code == 0 && removed.text.contains("gattherd_attic"), "\(removed)")
        let status = try await run("fleet", "status", url)
        #expect(status.text.contains("cellar") && !status.text.contains("attic"), "\(status)")
        #expect(try await run("fleet", "remove", url, "loft").code == 69)
        #expect(try await run("fleet", "add", url, "attic").code == 0)
        #expect(try await run("fleet", "status", url).text.contains("attic"))
        await server.stop()
    }

    @Test func `the status warns of rows without a partition that keep new partitions from being made`() async throws {
        #expect(try await run("fleet", "init", url).code == 0)
        #expect(try await run("fleet", "status", url).errors.isEmpty)
        try await server.rows(
            """
            INSERT INTO gattherd.sample_other (ts, seq, value, journal, series)
            SELECT n, n, n, 1, 1 FROM generate_series(1, 800000) AS n
            """,
            database: "fleet"
        )
        let status = try await run("fleet", "status", url, "--json")
        #expect(status.code == 0 && status.text == "[]\n", "\(status)")
        #expect(status.errors.contains("gattherd.sample_other is full"), "\(status)")
        await server.stop()
    }

    @Test func `the status warns of a server with hardly any free connection`() async throws {
        let small = try await PostgresServer(settings: ["max_connections=4"])
        try await small.start()
        try await small.rows("CREATE DATABASE fleet")
        let url = "postgresql://postgres@127.0.0.1:\(small.port)/fleet"
        #expect(try await run("fleet", "init", url).code == 0)
        let status = try await run("fleet", "status", url, "--json")
        #expect(status.code == 0 && status.text == "[]\n", "\(status)")
        #expect(status.errors.contains("of 1 connections of the server are in use"), "\(status)")
        await small.stop()
        await server.stop()
    }

    @Test func `the status does not count connections of replication`() async throws {
        let small = try await PostgresServer(settings: ["max_connections=13"])
        try await small.start()
        try await small.rows("CREATE DATABASE fleet")
        let url = "postgresql://postgres@127.0.0.1:\(small.port)/fleet"
        #expect(try await run("fleet", "init", url).code == 0)
        let replicas = (0..<8).map { _ in
            Task { try await small.rows("SELECT pg_sleep(600)", database: "dbname=fleet replication=database") }
        }
        let count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsender'"
        try await eventually { try await small.value(count) == "8" }
        #expect(try await run("fleet", "status", url).errors.isEmpty)
        await small.stop()
        for replica in replicas { _ = await replica.result }
        await server.stop()
    }

    @Test func `a wrong name, a wrong URL and a centre that is away end with the remedy`() async throws {
        #expect(try await run("fleet", "init", url).code == 0)
        #expect(try await run("fleet", "add", url, "attic").code == 0)
        try await server.rows(Self.readings, database: "fleet")
        let wrong = try await run("history", "--fleet", url, "--device", "tagg")
        #expect(wrong.code == 65 && wrong.errors.contains("did you mean 'tag'?"), "\(wrong)")
        let unknown = try await run("history", "--fleet", url, "--device", "C0:FF:EE:00:00:02")
        #expect(unknown.code == 65 && unknown.errors.contains("no device 'C0:FF:EE:00:00:02'"), "\(unknown)")
        let both = try await run("history", "--fleet", url, "--database", "x.db")
        #expect(both.code == 64 && both.errors.contains("exclude each other"))
        let secret = try await run("history", "--fleet", "postgresql://me:secret@127.0.0.1/fleet")
        #expect(secret.code == 64 && secret.errors.contains("--password-file"))
        await server.stop()
        let away = try await run("history", "--fleet", url)
        #expect(away.code == 69, "\(away)")
    }
}
