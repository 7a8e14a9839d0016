import TestKit
import Testing

@testable import GattherdPostgres

/// Functions and operators that a role of a gateway has made in a schema which others search.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetSearchPathTests {
    /// The operators of the centre's arithmetic that PostgreSQL has only for other types.
    private static let operators = [
        ("%", "bigint", "integer", "bigint"), ("*", "bigint", "interval", "interval"),
        ("<", "double precision", "numeric", "boolean"), ("/", "double precision", "bigint", "double precision"),
    ]

    /// Adds operators of a gateway's role to the schema `public`; each ends the statement that uses it.
    private func addOperators(to centre: Centre, by credentials: FleetDatabase.Credentials) async throws {
        _ = try await centre.rows("GRANT CREATE ON SCHEMA public TO \(credentials.role)")
        let client = PostgresClient(try Centre.url(centre.server.port), user: credentials.role) { credentials.password }
        for (number, (name, left, right, result)) in Self.operators.enumerated() {
            let function = "public.foreign_\(number)"
            _ = try await client.run(
                """
                CREATE FUNCTION \(function)(\(left), \(right)) RETURNS \(result) LANGUAGE plpgsql
                AS 'BEGIN RAISE EXCEPTION ''a foreign operator is called''; END'
                """
            )
            _ = try await client.run(
                "CREATE OPERATOR public.\(name) (LEFTARG = \(left), RIGHTARG = \(right), FUNCTION = \(function))"
            )
        }
    }

    @Test func `views call no operators of the reader's search path`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        try await centre.sink(of: "attic", credentials).deliver(Entries.numbered(1...10))
        try await addOperators(to: centre, by: credentials)
        #expect(try await centre.value("SELECT max(time) FROM gattherd.history") == "2026-11-21T03:20:05.223456Z")
        #expect(try await centre.value("SELECT mean FROM gattherd.history_minutes") == "5.5")
        #expect(try await centre.value("SELECT gattherd.floored(-1, 60)") == "-60")
    }

    @Test func `commands call no operators of their user's search path`() async throws {
        let centre = try await Centre()
        let credentials = try await centre.fleet.add(gateway: "attic")
        try await addOperators(to: centre, by: credentials)
        _ = try await centre.fleet.install(isNew: false)
        _ = try await centre.fleet.add(gateway: "cellar")
        #expect(try await centre.fleet.rename(gateway: "cellar", to: "barn") == "gattherd_barn")
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...10))
        #expect(try await centre.value("SELECT mean FROM gattherd.history_minutes") == "5.5")
    }
}
