import GattherdHistory
import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

extension CentralHistoryTests {
    @Test(arguments: [Int64.min, -1, 1 << 53 + 1, .max])
    func `a cursor at the centre that no entry can have is refused, until it is corrected`(cursor: Int64) async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        _ = try await centre.rows("UPDATE gattherd.journal SET cursor = \(cursor)")
        let error = await #expect(throws: OutputFault.self) { _ = try await sink.cursor(in: .test) }
        #expect(error?.kind == .misconfigured && error?.detail.contains("\(cursor), which no entry has") == true)
        _ = try await centre.rows("UPDATE gattherd.journal SET cursor = 10")
        #expect(try await sink.cursor(in: .test) == 10)
    }

    @Test func `a promoted standby that lacks the last transactions gets them again`() async throws {
        let centre = try await Centre()
        let standby = try await PostgresServer(standbyOf: centre.server)
        try await standby.start()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let hosts = "127.0.0.1:\(centre.server.port),127.0.0.1:\(standby.port)"
        let url = try PostgresURL("postgresql://\(hosts)/\(Centre.database)")
        let client = PostgresClient(url, user: credentials.role) { credentials.password }
        let sink = PostgresSink(client, url: url, gateway: "attic", version: "1.2.3")
        let clock = SlowClock()
        clock.synchronise()
        let history = try await open(clock.clock)
        let output = Self.output(history, sink)
        let running = Task { await output.run() }
        func deliver(_ rounds: Range<Int>, to server: PostgresServer) async throws {
            for round in rounds {
                clock.pass(.seconds(1))
                try await store(round, history, at: clock.clock.now())
            }
            let count = "SELECT count(*) FROM gattherd.rejects"
            try await eventually {
                (try? await server.value(count, database: Centre.database)) == "\(rounds.upperBound)"
            }
        }
        try await deliver(0..<5, to: centre.server)
        try await eventually {
            (try? await standby.value("SELECT count(*) FROM gattherd.rejects", database: Centre.database)) == "5"
        }
        await standby.stop()
        try await deliver(5..<9, to: centre.server)
        await centre.server.kill()
        try await standby.start()
        let left = try await standby.value("SELECT count(*) FROM gattherd.rejects", database: Centre.database)
        #expect(left == "5", "the standby has what it had")
        try await standby.rows("SELECT pg_promote()")
        try await deliver(9..<12, to: standby)
        try await eventually { output.status.backlog == 0 }
        let promoted = try Centre(server: standby)
        try await expectEqual(promoted)
        #expect(try await promoted.rows("SELECT * FROM gattherd.gaps").isEmpty)
        await output.stop(within: .seconds(5))
        await running.value
        try await history.close()
    }

    @Test func `a gateway without new entries is seen as long as its output runs`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let clock = SlowClock()
        clock.synchronise()
        let history = try await open(clock.clock)
        let output = ReportingOutput(Self.output(history, sink), sink, pause: .milliseconds(20))
        let running = Task { await output.run() }
        let seen = "SELECT count(*) FROM gattherd.gateways WHERE last_seen IS NOT NULL"
        for _ in 0..<3 {
            try await eventually { try await centre.value(seen) == "1" && output.status.state == .connected }
            _ = try await centre.rows("UPDATE gattherd.gateway SET last_seen = NULL")
        }
        try await eventually { try await centre.value(seen) == "1" }
        await output.stop(within: .seconds(5))
        await running.value
        try await history.close()
    }

    @Test func `a correction is completed although there are no new entries`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let clock = SlowClock()
        clock.synchronise()
        let history = try await open(clock.clock)
        _ = try await sink.cursor(in: try await history.consumer("postgres").epoch())
        _ = try await centre.rows(
            "INSERT INTO gattherd.correction SELECT id, n, 0, n, 1, 0 FROM gattherd.journal, generate_series(1, 9) AS n"
        )
        let output = ReportingOutput(Self.output(history, sink), sink, pause: .milliseconds(20))
        let running = Task { await output.run() }
        try await eventually { try await centre.value("SELECT count(*) FROM gattherd.correction") == "0" }
        await output.stop(within: .seconds(5))
        await running.value
        try await history.close()
    }
}

/// Faults of the network and of the server's resources.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct CentreFaultTests {
    private static func expectAll(_ centre: Centre, _ count: Int) async throws {
        let numbers = try await centre.rows("SELECT count(*), count(DISTINCT seq), max(seq) FROM gattherd.history")
        #expect(numbers == [["\(count)", "\(count)", "\(count)"]])
        try await centre.expectSummaries()
    }

    /// Returns the answer of a server with TLS to a gateway that trusts `authority` and expects `host`.
    private static func answer(
        _ centre: Centre,
        _ credentials: FleetDatabase.Credentials,
        authority: String?,
        host: String
    ) async throws -> OutputFault? {
        let address = "hostaddr=127.0.0.1&port=\(centre.server.port)&sslmode=verify-full"
        let url = try PostgresURL("postgresql://\(host)/\(Centre.database)?\(address)")
        let client = PostgresClient(url, user: credentials.role, authority: authority) { credentials.password }
        let sink = PostgresSink(client, url: url, gateway: "attic", version: "1.2.3")
        do throws(OutputFault) {
            _ = try await sink.cursor(in: .test)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a server is believed only with its own name, by the authority that is configured`() async throws {
        let authority = try await Authority()
        let centre = try await Centre(identity: try await authority.identity(for: "DNS:db.example.com"))
        let credentials = try await centre.fleet.add(gateway: "attic")
        let good = authority.certificate
        #expect(try await Self.answer(centre, credentials, authority: good, host: "db.example.com") == nil)
        let encrypted = """
            SELECT ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE usename = 'gattherd_attic'
            """
        #expect(try await centre.rows(encrypted).allSatisfy { $0 == ["t"] })
        let other = try await Authority("other")
        let cases: [(String?, String)] = [
            (good, "other.example.com"), (other.certificate, "db.example.com"), (nil, "db.example.com"),
        ]
        for (authority, host) in cases {
            let fault = try await Self.answer(centre, credentials, authority: authority, host: host)
            #expect(fault?.kind == .misconfigured, "\(fault?.detail ?? "")")
            #expect(fault?.detail.contains("postgres.ca_file") == true, "\(fault?.detail ?? "")")
        }
    }

    @Test func `a server without TLS is refused where TLS is required`() async throws {
        let authority = try await Authority()
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let certificate = authority.certificate
        let fault = try await Self.answer(centre, credentials, authority: certificate, host: "db.example.com")
        #expect(fault?.kind == .misconfigured)
        #expect(fault?.detail.contains("switch on TLS") == true, "\(fault?.detail ?? "")")
    }

    @Test(.enabled(if: SmallFileSystem.isPossible, "needs the right to mount"))
    func `a full disk of the server loses and repeats nothing`() async throws {
        let centre = try await Centre()
        let disk = try SmallFileSystem(kibibytes: 1024)
        try await centre.server.useTablespace(on: disk, database: Centre.database)
        let sink = try await centre.sink(of: "attic")
        let now = try #require(Int64(try await centre.value("SELECT floor(extract(epoch FROM now()) * 1000000)")))
        let entries = Entries.numbered(1...20_000, from: Timestamp(microseconds: now - 3_600_000_000))
        let faults = try await sink.deliver(entries, batch: 1000) { _ in disk.resize(kibibytes: 16_384) }
        #expect(!faults.isEmpty)
        #expect(faults.allSatisfy { $0.kind == .unavailable && $0.detail.contains("make room") }, "\(faults)")
        try await Self.expectAll(centre, 20_000)
        await centre.server.stop()
    }

    @Test func `a statement that takes too long is tried again`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        _ = try await centre.rows("ALTER ROLE gattherd_attic SET statement_timeout = '200ms'")
        await sink.close()
        let limited = try await centre.sink(of: "attic")
        let blocker = try await Self.lock("gattherd.journal", centre)
        let faults = try await limited.deliver(Entries.numbered(1...20)) { _ in
            _ = try await centre.rows("ALTER ROLE gattherd_attic RESET statement_timeout")
            await limited.close()
            blocker.close()
        }
        #expect(faults.map(\.kind) == [.unavailable])
        #expect(faults.first?.detail.contains("tried again") == true, "\(faults)")
        try await Self.expectAll(centre, 20)
    }

    @Test func `a deadlock is tried again`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        let gate = try await Self.lock("gattherd.event", centre)
        let other = try await Self.lock("gattherd.reject", centre)
        let event = LifecycleEvent(time: Entries.time, device: nil, kind: "daemon", detail: "{}")
        let reject = Reject(time: Entries.time, device: "strap", characteristic: "2a37", payload: [0], reason: "short")
        let entries = Entries.numbered(1...20) + [.event(event, seq: 21), .reject(reject, seq: 22)]
        async let faults = sink.deliver(entries) { _ in other.close() }
        try await Self.waitForLock(of: "gattherd_attic", centre)
        // The gateway has locked its journal and waits for the gate. This client has the next table that the gateway
        // needs, and now waits for the journal. The deadlock is complete when the gate opens.
        async let end: Void? = try? other.perform(within: .seconds(20)) { (connection, call) throws(PostgresError) in
            try connection.script("SET deadlock_timeout = '1min'; UPDATE gattherd.journal SET since = since") {
                call.mayContinue
            }
        }
        try await Self.waitForLock(of: "postgres", centre)
        gate.close()
        _ = await end
        other.close()
        let kinds = try await faults.map(\.kind)
        #expect(kinds == [.unavailable])
        try await Self.expectAll(centre, 20)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.events") == "1")
    }

    /// Waits until a connection of a user waits for a lock.
    private static func waitForLock(of user: String, _ centre: Centre) async throws {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE usename = '\(user)' AND wait_event_type = 'Lock'"
        try await eventually { try await centre.value(sql) == "1" }
    }

    /// Returns a client that holds a lock on a table until it is closed.
    private static func lock(_ table: String, _ centre: Centre) async throws -> PostgresClient {
        let client = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
        _ = try await client.perform(within: .seconds(60)) { (connection, call) throws(PostgresError) in
            try connection.script("BEGIN; LOCK TABLE \(table) IN ACCESS EXCLUSIVE MODE") { call.mayContinue }
        }
        return client
    }
}
