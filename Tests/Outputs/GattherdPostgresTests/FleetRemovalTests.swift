import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

/// Gateways that are retired.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetRemovalTests {
    private static let problem = "SELECT problem FROM gattherd.gateways"
    private static let connections = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gattherd_attic'"
    private static let leases = """
        INSERT INTO gattherd.lease (address, device, owner, expires, released, gateways)
        VALUES ('A', 'a', 1, now() + interval '30 s', false, '{attic,cellar}'),
            ('B', 'b', NULL, now(), true, '{attic}');
        INSERT INTO gattherd.lease_bid (address, gateway, device, standing, updated)
        VALUES ('A', 1, 'a', 'linked', now())
        """

    @Test func `a removed gateway keeps its history, and continues when it is added again`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let sink = try centre.sink(of: "attic", credentials, daemon: DaemonRun(machine: "a1"))
        try await sink.deliver(Entries.numbered(1...10))
        #expect(try await centre.fleet.remove(gateway: "attic") == "gattherd_attic")
        while try await centre.value(Self.connections) != "0" {}
        await #expect(throws: OutputFault.self) { try await sink.cursor(in: .test) }
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "10")
        _ = try await centre.fleet.install(isNew: false)
        #expect(try await centre.value("SELECT has_schema_privilege('gattherd_attic', 'gattherd', 'USAGE')") == "f")
        #expect(try await centre.value(Self.problem) == "removed")

        let again = try await centre.fleet.add(gateway: "attic")
        #expect(try await centre.value(Self.problem) == "NULL")
        let replacement = try centre.sink(of: "attic", again, daemon: DaemonRun(machine: "b2"))
        #expect(try await replacement.deliver(Entries.numbered(1...20)).isEmpty)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "20")
    }

    @Test func `the leases and bids of a removed gateway end, and lists of gateways no longer name it`() async throws {
        let centre = try await Centre()
        for name in ["attic", "cellar"] { _ = try await centre.fleet.add(gateway: name) }
        _ = try await centre.rows(Self.leases)
        _ = try await centre.fleet.remove(gateway: "attic")
        let leases = try await centre.rows("SELECT device, state, gateways FROM gattherd.leases ORDER BY device")
        #expect(leases == [["a", "released", "{cellar}"], ["b", "never owned", "NULL"]])
        #expect(try await centre.value("SELECT count(*) FROM gattherd.bids") == "0")
    }

    @Test func `an owner of the database that is no superuser ends the access of an open connection`() async throws {
        let server = try await PostgresServer()
        try await server.start()
        try await server.rows("CREATE ROLE keeper LOGIN CREATEROLE PASSWORD 'secret'")
        try await server.rows("CREATE DATABASE \(Centre.database) OWNER keeper")
        let url = try Centre.url(server.port, user: "keeper")
        let fleet = FleetDatabase(PostgresClient(url) { "secret" }, url: url)
        _ = try await fleet.install(isNew: true)
        let sink = try Centre(server: server).sink(of: "attic", try await fleet.add(gateway: "attic"))
        try await sink.deliver(Entries.numbered(1...10))
        _ = try await fleet.remove(gateway: "attic")
        let entries = Entries.numbered(11...12)
        let fault = await #expect(throws: OutputFault.self) { try await sink.write(entries, after: 10, through: 12) }
        #expect(fault?.detail.contains("permission denied for schema gattherd") == true)
    }

    @Test func `no role of an administrator, and no unknown gateway, is removed`() async throws {
        let centre = try await Centre()
        _ = try await centre.fleet.add(gateway: "attic")
        _ = try await centre.rows("CREATE ROLE keeper LOGIN CREATEROLE")
        for (role, gateway, words) in [
            ("keeper", "attic", "has other rights"), ("gone", "attic", "is missing"),
            ("keeper", "loft", "it has no gateway 'loft'"),
        ] {
            _ = try await centre.rows("UPDATE gattherd.gateway SET role = '\(role)'")
            let failure = await #expect(throws: FleetDatabase.Failure.self) {
                try await centre.fleet.remove(gateway: gateway)
            }
            #expect(failure?.description.contains(words) == true)
        }
        #expect(try await centre.value("SELECT rolcanlogin FROM pg_roles WHERE rolname = 'keeper'") == "t")
    }
}
