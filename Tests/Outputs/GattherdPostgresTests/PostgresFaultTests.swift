import GattherdModel
import GattherdOutputs
import GattherdSync
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct PostgresFaultTests {
    private static func fault(_ sink: PostgresSink) async throws -> OutputFault? {
        await #expect(throws: OutputFault.self) {
            let start = try await sink.cursor(in: .test)
            try await sink.write(Entries.numbered((start + 1)...(start + 1)), after: start, through: start + 1)
        }
    }

    private static func expectAll(_ centre: Centre, _ count: Int) async throws {
        let numbers = try await centre.rows("SELECT count(*), count(DISTINCT seq), max(seq) FROM gattherd.history")
        #expect(numbers == [["\(count)", "\(count)", "\(count)"]])
        #expect(try await centre.value("SELECT sum(n) FROM gattherd.history_minutes") == "\(count)")
    }

    @Test func `connections that are cut at any byte lose and repeat nothing`() async throws {
        let centre = try await Centre()
        let proxy = try CuttingProxy(to: centre.server.port)
        let sink = try await centre.sink(of: "attic", port: proxy.port)
        let faults = try await sink.deliver(Entries.numbered(1...3000), batch: 20)
        #expect(faults.count > 3)
        #expect(faults.allSatisfy { $0.kind == .unavailable }, "\(faults.map(\.detail))")
        try await Self.expectAll(centre, 3000)
    }

    @Test func `a server that is killed and started again has each entry once`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let entries = Entries.numbered(1...5000)
        async let faults = sink.deliver(entries, batch: 20) { _ in
            // Until the server is there again.
            try await Task.sleep(for: .milliseconds(20))
        }
        for _ in 0..<4 {
            let before = try await centre.value("SELECT count(*) FROM gattherd.history")
            try await eventually {
                let now = try await centre.value("SELECT count(*) FROM gattherd.history")
                return now != before || now == "5000"
            }
            await centre.server.kill()
            try await centre.server.start()
        }
        #expect(try await faults.allSatisfy { $0.kind == .unavailable })
        try await Self.expectAll(centre, 5000)
    }

    @Test func `a backend that is ended between statements is replaced without a fault`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        _ = try await centre.rows(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'gattherd_attic'"
        )
        #expect(try await sink.deliver(Entries.numbered(1...20)).isEmpty)
        try await Self.expectAll(centre, 20)
    }

    @Test(arguments: [
        ("default_transaction_read_only", "on", "name the primary"),
        ("default_transaction_isolation", "'repeatable read'", "= 'read committed'"),
        ("default_transaction_isolation", "'serializable'", "= 'read committed'"),
    ])
    func `a connection with wrong transactions is replaced`(
        setting: String,
        value: String,
        words: String
    ) async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        _ = try await centre.rows("ALTER ROLE gattherd_attic SET \(setting) = \(value)")
        let sink = try centre.sink(of: "attic", credentials)
        #expect(try await Self.fault(sink)?.detail.contains(words) == true)
        // The setting is that of new connections; the first one keeps it.
        _ = try await centre.rows("ALTER ROLE gattherd_attic RESET \(setting)")
        #expect(try await sink.deliver(Entries.numbered(1...20)).isEmpty)
        try await Self.expectAll(centre, 20)
    }

    @Test func `a connection that takes longer than a call is used by the next one`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let silent = try HostileServer(.silent)
        let hosts = "127.0.0.1:\(silent.port),127.0.0.1:\(centre.server.port)"
        let url = try PostgresURL("postgresql://\(hosts)/\(Centre.database)?connect_timeout=2")
        let client = PostgresClient(url, user: credentials.role) { credentials.password }
        await #expect(throws: PostgresError.self) { try await client.run("SELECT 1", within: .milliseconds(500)) }
        try await eventually {
            (try? await client.run("SELECT 1", within: .milliseconds(500))) == [["1"]]
        }
    }

    @Test func `each state of the centre is a fault with its remedy`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        let cases: [(String, String, OutputFault.Kind, String)] = [
            (
                "ALTER DATABASE fleet SET default_transaction_read_only = on",
                "ALTER DATABASE fleet RESET default_transaction_read_only",
                .unavailable, "name the primary"
            ),
            (
                "REVOKE EXECUTE ON FUNCTION gattherd.position FROM gattherd_attic",
                "GRANT EXECUTE ON FUNCTION gattherd.position TO gattherd_attic", .misconfigured, "gattherd fleet add"
            ),
            ("ALTER ROLE gattherd_attic NOLOGIN", "ALTER ROLE gattherd_attic LOGIN", .misconfigured, "fleet add"),
            (
                "ALTER ROLE gattherd_attic CONNECTION LIMIT 0", "ALTER ROLE gattherd_attic CONNECTION LIMIT -1",
                .unavailable, "too many connections"
            ),
            (
                "ALTER FUNCTION gattherd.append RENAME TO gone", "ALTER FUNCTION gattherd.gone RENAME TO append",
                .misconfigured, "gattherd fleet upgrade"
            ),
            (
                "ALTER SCHEMA gattherd RENAME TO gone", "ALTER SCHEMA gone RENAME TO gattherd", .misconfigured,
                "run at the centre: gattherd fleet init"
            ),
            (
                "UPDATE gattherd.gateway SET role = 'x'", "UPDATE gattherd.gateway SET role = 'gattherd_attic'",
                .misconfigured, "belongs to no gateway"
            ),
            (
                "ALTER TABLE gattherd.event RENAME COLUMN kind TO gone; ALTER TABLE gattherd.sample RENAME seq TO gone",
                "ALTER TABLE gattherd.event RENAME COLUMN gone TO kind; ALTER TABLE gattherd.sample RENAME gone TO seq",
                .misconfigured, "gattherd fleet upgrade"
            ),
        ]
        for (damage, repair, kind, words) in cases {
            _ = try await centre.rows(damage)
            await sink.close()
            _ = try await centre.rows(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'gattherd_attic'"
            )
            let fault = try await Self.fault(sink)
            #expect(fault?.kind == kind, "\(damage): \(fault?.detail ?? "")")
            #expect(fault?.detail.contains(words) == true, "\(damage): \(fault?.detail ?? "")")
            _ = try await centre.rows(repair)
        }
        try await sink.deliver(Entries.numbered(1...20))
        try await Self.expectAll(centre, 20)
    }

    @Test func `a server that is away, a wrong password and a missing database are distinguished`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let wrong = FleetDatabase.Credentials(role: credentials.role, password: "wrong")
        let refused = try await Self.fault(try centre.sink(of: "attic", wrong))
        #expect(refused?.kind == .misconfigured)
        #expect(refused?.detail.contains("password_file") == true)
        #expect(refused?.detail.contains("wrong") == false)
        let away = try await Self.fault(try centre.sink(of: "attic", credentials, port: try Broker.freePort()))
        #expect(away?.kind == .unavailable)
        let url = try PostgresURL("postgresql://127.0.0.1:\(centre.server.port)/nowhere")
        let client = PostgresClient(url, user: credentials.role) { credentials.password }
        let missing = try await Self.fault(PostgresSink(client, url: url, gateway: "attic", version: "1"))
        #expect(missing?.kind == .misconfigured)
    }

    @Test func `a statement that waits for a lock ends when it is cancelled, also at the server`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        let url = try Centre.url(centre.server.port, user: "postgres")
        let blocker = PostgresClient(url)
        _ = try await blocker.perform(within: .seconds(60)) { (connection, call) throws(PostgresError) in
            try connection.script("BEGIN; LOCK TABLE gattherd.journal IN ACCESS EXCLUSIVE MODE") { call.mayContinue }
        }
        let task = Task { try await sink.write(Entries.numbered(11...20), after: 10, through: 20) }
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gattherd_attic' AND wait_event_type = 'Lock'"
        try await eventually { try await centre.value(waiting) == "1" }
        task.cancel()
        await #expect(throws: OutputFault.self) { try await task.value }
        try await eventually { try await centre.value(waiting) == "0" }
        blocker.close()
        try await sink.deliver(Entries.numbered(1...20))
        try await Self.expectAll(centre, 20)
    }
}
