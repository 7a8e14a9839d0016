import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

@Suite(.timeLimit(.minutes(1)))
struct PostgresClientTests {
    private static func client(_ server: HostileServer) throws -> PostgresClient {
        PostgresClient(try PostgresURL("postgresql://127.0.0.1:\(server.port)/fleet"), user: "attic")
    }

    @Test(arguments: [
        "FATAL: sorry, too many clients already", "FATAL: too many connections for role \"gattherd_attic\"",
        "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "FATAL: no more connections allowed (max_client_conn)",
    ])
    func `a server without free connections is reported as such`(words: String) throws {
        let url = try PostgresURL("postgresql://127.0.0.1/fleet")
        let fault = OutputFault(PostgresError(.connection, words), at: url)
        #expect(fault.kind == .unavailable)
        #expect(fault.detail.contains("raise max_connections there"))
    }

    @Test(arguments: [
        ("connection to server at \"10.0.0.1\", port 5432 failed: session is read-only", "name the primary", false),
        ("FATAL: transaction blocks not allowed in statement pooling mode", "pool_mode = transaction", true),
        ("FATAL: pg_hba.conf rejects connection for host \"10.0.0.2\", user \"x\"", "allow this host and role", true),
        ("FATAL: Ident authentication failed for user \"x\"", "scram-sha-256 for this host into pg_hba.conf", true),
        ("connection to server failed: Connection refused", "whether the database runs, and the URL", false),
    ])
    func `a refused connection is a fault with its remedy`(words: String, remedy: String, isLasting: Bool) throws {
        let url = try PostgresURL("postgresql://10.0.0.1,10.0.0.2/fleet")
        let fault = OutputFault(PostgresError(.connection, words), at: url)
        #expect(fault.kind == (isLasting ? .misconfigured : .unavailable))
        #expect(fault.detail.contains(remedy))
    }

    @Test(arguments: [HostileServer.Answer.endlessRows, .endlessRow])
    func `an answer without end is refused before the time has passed`(answer: HostileServer.Answer) async throws {
        let server = try HostileServer(answer)
        let client = try Self.client(server)
        let error = await #expect(throws: PostgresError.self) {
            _ = try await client.run("SELECT x", within: .seconds(3000))
        }
        #expect(error?.kind == .connection)
        #expect(error?.detail.contains("more than") == true)
    }

    @Test func `notifications that nobody asked for are not kept in memory`() async throws {
        let server = try HostileServer(.notifications)
        let isKept = try await Self.client(server).perform(within: .seconds(30)) {
            (connection, call) throws(PostgresError) in
            _ = try connection.run("SELECT x", []) { call.mayContinue }
            return connection.removeNotification()
        }
        #expect(!isKept)
    }

    @Test func `a server that accepts connections and sends nothing does not block the caller`() async throws {
        let server = try HostileServer(.silent)
        let client = try Self.client(server)
        let error = await #expect(throws: PostgresError.self) {
            _ = try await client.run("SELECT x", within: .milliseconds(200))
        }
        #expect(error?.kind == .connection)
        #expect(error?.detail.hasPrefix("it did not answer within ") == true)
        #expect(server.count == 1)
    }

    @Test func `a server that never becomes ready fails each call, and blocks none`() async throws {
        let server = try HostileServer(.unfinished)
        let client = try Self.client(server)
        // On a slow machine the time may be over before a connection is made.
        while server.count < 8 {
            let error = await #expect(throws: PostgresError.self) {
                _ = try await client.run("SELECT x", within: .milliseconds(200))
            }
            try #require(error?.kind == .cancelled)
        }
    }
}
