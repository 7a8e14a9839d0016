import GattherdMachines
import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

/// Two gateways with one name, and gateways that get another name.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetNameTests {
    /// Lets time pass for the daemons that the centre knows.
    private func age(_ centre: Centre, by interval: String, where condition: String = "true") async throws {
        _ = try await centre.rows(
            "UPDATE gattherd.run SET since = since - interval '\(interval)', seen = seen - interval '\(interval)' "
                + "WHERE \(condition)"
        )
    }

    @Test func `of two gateways with one name the younger is refused while the older is connected`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let older = try centre.sink(of: "attic", credentials, daemon: DaemonRun())
        let younger = try centre.sink(of: "attic", credentials, daemon: DaemonRun())
        #expect(try await older.cursor(in: .test) == 0)
        #expect(try await younger.cursor(in: .other) == 0, "it could be the older one after a restart")
        try await age(centre, by: "1 minute")
        #expect(try await older.deliver(Entries.numbered(1...10)).isEmpty)
        let fault = await #expect(throws: OutputFault.self) { try await younger.cursor(in: .other) }
        #expect(fault?.kind == .misconfigured && fault?.retryWithin == .seconds(30))
        #expect(fault?.detail.contains("another gateway with the name \"attic\" is connected, since ") == true)
        #expect(try await centre.value("SELECT problem FROM gattherd.gateways") == "several gateways have this name")
        #expect(try await older.deliver(Entries.numbered(1...20)).isEmpty)
        try await age(centre, by: "7 minutes", where: "since = (SELECT min(since) FROM gattherd.run)")
        #expect(try await younger.deliver(Entries.numbered(1...5), in: .other).isEmpty)
        #expect(try await centre.value("SELECT problem FROM gattherd.gateways") == "NULL")
    }

    @Test func `a gateway with a duplicate name stops within one report`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let older = try centre.sink(of: "attic", credentials, daemon: DaemonRun())
        let younger = try centre.sink(of: "attic", credentials, daemon: DaemonRun())
        _ = try await older.cursor(in: .test)
        try await younger.deliver(Entries.numbered(1...5), in: .other)
        try await age(centre, by: "1 minute")
        await older.report()
        await younger.report()
        let entries = Entries.numbered(6...7)
        let fault = await #expect(throws: OutputFault.self) { try await younger.write(entries, after: 5, through: 7) }
        #expect(fault?.kind == .misconfigured)
    }

    @Test func `a copy on another machine is refused until the first gateway was silent for a while`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        func sink(_ machine: String) throws -> PostgresSink {
            try centre.sink(of: "attic", credentials, daemon: DaemonRun(machine: machine))
        }
        let copy = try sink("b2")
        #expect(try await sink("a1").deliver(Entries.numbered(1...10)).isEmpty)
        let fault = await #expect(throws: OutputFault.self) { try await copy.cursor(in: .test) }
        #expect(fault?.kind == .misconfigured)
        #expect(try await centre.value("SELECT problem FROM gattherd.gateways") == "several gateways have this name")
        try await age(centre, by: "1 minute", where: "run LIKE 'a1%'")
        #expect(try await sink("a1").deliver(Entries.numbered(1...20)).isEmpty, "the first one was restarted")
        await #expect(throws: OutputFault.self) { try await copy.cursor(in: .test) }
        try await age(centre, by: "4 minutes", where: "run LIKE 'a1%'")
        #expect(try await copy.cursor(in: .test) == 20)
        #expect(try await centre.value("SELECT problem FROM gattherd.gateways") == "NULL")
    }

    @Test func `a second gateway is no problem if it ended before the clock of the centre was set back`() async throws {
        let centre = try await Centre()
        _ = try await centre.sink(of: "attic").cursor(in: .test)
        _ = try await centre.rows("INSERT INTO gattherd.run VALUES (1, 'b2-1', 'infinity', now() + interval '1 year')")
        #expect(try await centre.value("SELECT problem FROM gattherd.gateways") == "NULL")
    }

    @Test func `a daemon that is restarted again and again is one gateway`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        for number in 1...5 {
            let sink = try centre.sink(of: "attic", credentials, daemon: DaemonRun())
            #expect(try await sink.deliver(Entries.numbered(1...Int64(number))).isEmpty)
            try await age(centre, by: "10 seconds")
        }
        #expect(try await centre.value("SELECT problem FROM gattherd.gateways") == "NULL")
        try await age(centre, by: "2 days")
        _ = try await centre.sink(of: "attic").cursor(in: .test)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.run") == "1")
    }

    @Test func `a gateway with a duplicate name exchanges no leases`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        let url = try Centre.url(centre.server.port)
        let sides = (0..<2).map { _ in
            let client = PostgresClient(url, user: credentials.role) { credentials.password }
            return PostgresLeases(client, url: url, gateway: "attic", daemon: DaemonRun(), attendancePause: .zero)
        }
        let bid = LeaseBid(gateway: "attic", standing: .heard)
        let request = LeaseRequest(device: "s", address: "A", bid: bid, isBidDue: true, operation: .observe)
        for side in sides { _ = try await side.exchange([request], within: .seconds(20)) }
        try await age(centre, by: "1 minute")
        _ = try await centre.rows(
            "UPDATE gattherd.run SET seen = now() WHERE since = (SELECT min(since) FROM gattherd.run)"
        )
        let fault = await #expect(throws: OutputFault.self) {
            try await sides[1].exchange([request], within: .seconds(20))
        }
        #expect(fault?.detail.contains("another gateway with the name") == true)
        _ = try await sides[0].exchange([request], within: .seconds(20))
    }

    @Test func `a gateway that is renamed keeps its history, its leases and its password`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        try await centre.sink(of: "attic", credentials).deliver(Entries.numbered(1...10))
        _ = try await centre.rows(
            "INSERT INTO gattherd.lease (address, device, gateways) VALUES ('A', 'a', '{attic,cellar}')"
        )
        let role = try await centre.fleet.rename(gateway: "attic", to: "loft")
        #expect(role == "gattherd_loft")
        let renamed = FleetDatabase.Credentials(role: role, password: credentials.password)
        let sink = try centre.sink(of: "loft", renamed)
        #expect(try await sink.cursor(in: .test) == 10)
        #expect(try await centre.rows("SELECT DISTINCT gateway FROM gattherd.history") == [["loft"]])
        #expect(try await centre.value("SELECT gateways FROM gattherd.leases") == "{loft,cellar}")
        let client = PostgresClient(try Centre.url(centre.server.port), user: role) { credentials.password }
        let url = try Centre.url(centre.server.port)
        let leases = PostgresLeases(client, url: url, gateway: "loft", daemon: DaemonRun())
        let bid = LeaseBid(gateway: "loft", standing: .heard)
        var claim = LeaseRequest(
            device: "a",
            address: "A",
            bid: bid,
            isBidDue: true,
            operation: .claim(epoch: 0),
            reason: "first"
        )
        claim.gateways = ["attic", "cellar"]
        #expect(try await leases.exchange([claim], within: .seconds(20)).first?.isGranted == true)
        #expect(try await centre.value("SELECT gateways FROM gattherd.leases") == "{loft,cellar}")
        let old = try centre.sink(of: "attic", credentials)
        await #expect(throws: OutputFault.self) { try await old.cursor(in: .test) }
    }

    @Test func `a gateway that is renamed delivers nothing more by its connection`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...10))
        _ = try await centre.fleet.rename(gateway: "attic", to: "loft")
        let fault = await #expect(throws: OutputFault.self) {
            try await sink.write(Entries.numbered(11...20), after: 10, through: 20)
        }
        #expect(fault?.kind == .misconfigured)
        #expect(try await centre.value("SELECT count(*) FROM gattherd.history") == "10")
    }

    @Test func `a gateway that is renamed keeps a role that a person chose`() async throws {
        let centre = try await Centre()
        _ = try await centre.fleet.add(gateway: "attic")
        _ = try await centre.rows("CREATE ROLE upstairs LOGIN")
        _ = try await centre.rows("UPDATE gattherd.gateway SET role = 'upstairs'")
        #expect(try await centre.fleet.rename(gateway: "attic", to: "loft") == "upstairs")
    }

    @Test func `a gateway gets no role that has the rights of an administrator`() async throws {
        let centre = try await Centre()
        _ = try await centre.rows(
            "CREATE ROLE gattherd_admin LOGIN CREATEROLE; CREATE ROLE gattherd_keeper LOGIN; "
                + "ALTER TABLE gattherd.gap OWNER TO gattherd_keeper"
        )
        for name in ["admin", "keeper"] {
            let failure = await #expect(throws: FleetDatabase.Failure.self) {
                try await centre.fleet.add(gateway: name)
            }
            #expect(failure?.description.contains("give the gateway another name") == true)
        }
        let isKept = "SELECT rolcreaterole FROM pg_roles WHERE rolname = 'gattherd_admin'"
        #expect(try await centre.value(isKept) == "t")
        #expect(try await centre.value("SELECT count(*) FROM gattherd.gateway") == "0")
    }

    @Test func `an owner of the database that is no superuser gives new passwords`() async throws {
        let server = try await PostgresServer()
        try await server.start()
        try await server.rows("CREATE ROLE keeper LOGIN CREATEROLE PASSWORD 'secret'")
        try await server.rows("CREATE DATABASE \(Centre.database) OWNER keeper")
        let url = try Centre.url(server.port, user: "keeper")
        let fleet = FleetDatabase(PostgresClient(url) { "secret" }, url: url)
        _ = try await fleet.install(isNew: true)
        let (old, new) = (try await fleet.add(gateway: "attic"), try await fleet.add(gateway: "attic"))
        #expect(old.role == new.role && old.password != new.password)
        let centre = try Centre(server: server)
        #expect(try await centre.sink(of: "attic", new).cursor(in: .test) == 0)
    }

    @Test func `a gateway gets no name that another one has`() async throws {
        let centre = try await Centre()
        for name in ["attic", "cellar"] { _ = try await centre.fleet.add(gateway: name) }
        let taken = await #expect(throws: FleetDatabase.Failure.self) {
            try await centre.fleet.rename(gateway: "attic", to: "cellar")
        }
        #expect(taken?.description.hasSuffix("it has a gateway 'cellar' already") == true)
        let unknown = await #expect(throws: FleetDatabase.Failure.self) {
            try await centre.fleet.rename(gateway: "loft", to: "barn")
        }
        #expect(unknown?.description.hasSuffix("it has no gateway 'loft'") == true)
    }
}
