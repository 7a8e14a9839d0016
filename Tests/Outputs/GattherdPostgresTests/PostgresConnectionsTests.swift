import GattherdConfig
import GattherdMachines
import GattherdOutputs
import GattherdSync
import TestKit
import Testing

@testable import GattherdPostgres

/// The connections that the output and the leases of a gateway share.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct PostgresConnectionsTests {
    private static let process = "SELECT pg_backend_pid()"
    private static let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gattherd_attic'"
    private static let waiting = count + " AND wait_event_type = 'Lock'"
    /// A statement that ends when the superuser of the test gives back its lock.
    private static let long = "SELECT pg_advisory_xact_lock(1)"

    /// A centre with two clients of one gateway.
    private struct Site {
        let centre: Centre
        let output: PostgresClient
        let leases: PostgresClient
        /// The number of connections that were tried.
        let attempts = Locked(0)

        init(surplusTime: Duration = .seconds(600)) async throws {
            centre = try await Centre()
            let credentials = try await centre.fleet.add(gateway: "attic")
            let (url, connections) = (try Centre.url(centre.server.port), PostgresConnections(surplusTime: surplusTime))
            let client = { [attempts] in
                PostgresClient(url, user: credentials.role, connections: connections) {
                    attempts.withLock { $0 += 1 }
                    return credentials.password
                }
            }
            (output, leases) = (client(), client())
        }

        /// Takes the lock that ``long`` waits for, until the returned client is closed.
        func lock() async throws -> PostgresClient {
            let client = PostgresClient(try Centre.url(centre.server.port, user: "postgres"))
            _ = try await client.run("BEGIN")
            _ = try await client.run(PostgresConnectionsTests.long)
            return client
        }

        func isWaiting() async throws -> Bool {
            try await centre.value(PostgresConnectionsTests.waiting) == "1"
        }
    }

    @Test func `the clients of one section share a connection`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        var settings = PostgresSettings(url: Located(try Centre.url(centre.server.port)))
        settings.password = Located("password")
        let sides = (0..<2).map { _ in
            settings.leases(ofGateway: "attic") { (_, _) throws(OutputError) in credentials.password }
        }
        for side in sides { _ = try await side.exchange([], within: .seconds(20)) }
        #expect(try await centre.value(Self.count) == "1")
        for side in sides { side.close() }
    }

    @Test func `a statement does not wait for a long one of another client`() async throws {
        let site = try await Site()
        let lock = try await site.lock()
        let long = Task { try await site.output.run(Self.long) }
        try await eventually { try await site.isWaiting() }
        #expect(try await site.leases.run("SELECT 1") == [["1"]])
        #expect(try await site.isWaiting())
        lock.close()
        _ = try await long.value
    }

    @Test func `the second connection is closed when one is enough`() async throws {
        let site = try await Site(surplusTime: .zero)
        let lock = try await site.lock()
        let long = Task { try await site.output.run(Self.long) }
        try await eventually { try await site.isWaiting() }
        _ = try await site.leases.run("SELECT 1")
        #expect(site.attempts.withLock { $0 } == 2)
        lock.close()
        _ = try await long.value
        try await eventually { try await site.centre.value(Self.count) == "1" }
    }

    @Test func `the second connection is kept from one slow batch to the next`() async throws {
        #expect(PostgresConnections().surplusTime > LeaseMachine.Policy().calmPause * 2)
        let site = try await Site()
        for _ in 0..<2 {
            let lock = try await site.lock()
            let long = Task { try await site.output.run(Self.long) }
            try await eventually { try await site.isWaiting() }
            _ = try await site.leases.run("SELECT 1")
            lock.close()
            _ = try await long.value
        }
        #expect(site.attempts.withLock { $0 } == 2)
    }

    @Test func `clients take turns if the server has no second connection`() async throws {
        let site = try await Site()
        _ = try await site.centre.rows("ALTER ROLE gattherd_attic CONNECTION LIMIT 1")
        let lock = try await site.lock()
        let long = Task { try await site.output.run(Self.long) }
        try await eventually { try await site.isWaiting() }
        let next = Task { try await site.leases.run("SELECT 1") }
        try await eventually { site.attempts.withLock { $0 } == 2 }
        lock.close()
        _ = try await long.value
        #expect(try await next.value == [["1"]])
    }

    @Test func `a cancelled call gives up its turn`() async throws {
        let site = try await Site()
        _ = try await site.centre.rows("ALTER ROLE gattherd_attic CONNECTION LIMIT 1")
        let lock = try await site.lock()
        let long = Task { try await site.output.run(Self.long) }
        try await eventually { try await site.isWaiting() }
        let next = Task { try await site.leases.run("SELECT 1") }
        try await eventually { site.attempts.withLock { $0 } == 2 }
        next.cancel()
        await #expect(throws: PostgresError.self) { try await next.value }
        lock.close()
        _ = try await long.value
        #expect(try await site.leases.run("SELECT 1") == [["1"]])
    }

    @Test func `an exchange of leases with its report takes one turn`() async throws {
        let site = try await Site()
        // Closed clients open a connection for each turn.
        site.output.close()
        site.leases.close()
        let url = try Centre.url(site.centre.server.port)
        _ = try await PostgresLeases(site.leases, url: url, gateway: "attic").exchange([], within: .seconds(20))
        #expect(site.attempts.withLock { $0 } == 1)
    }

    @Test func `a client that closes leaves the connection to the other one`() async throws {
        let site = try await Site()
        let process = try await site.output.run(Self.process)
        site.output.close()
        #expect(try await site.leases.run(Self.process) == process)
        site.leases.close()
        try await eventually { try await site.centre.value(Self.count) == "0" }
    }
}
