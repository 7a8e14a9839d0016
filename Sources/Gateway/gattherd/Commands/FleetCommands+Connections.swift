import GattherdGateway
import GattherdPostgres

extension FleetCommands {
    /// The used and the usable connections of the server, if fewer than three are left.
    ///
    /// Replication and autovacuum have slots of their own. The type of another role's connection may be hidden.
    private static let scarceConnections = """
        SELECT used.n, usable.n FROM
            (SELECT pg_catalog.count(*) AS n FROM pg_catalog.pg_stat_activity a
                WHERE a.datid IS NOT NULL AND a.usesysid IS NOT NULL
                AND coalesce(a.backend_type, 'client backend') = 'client backend') AS used,
            (SELECT pg_catalog.current_setting('max_connections')::int
                - pg_catalog.current_setting('superuser_reserved_connections')::int
                - coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::int AS n) AS usable
        WHERE used.n + 3 > usable.n
        """

    /// Warns if gateways may get no connection.
    func warnOfScarceConnections() async throws(CommandFailure) {
        do throws(FleetDatabase.Failure) {
            for row in try await fleet.rows(Self.scarceConnections) {
                let numbers = row.map { $0 ?? "?" }.joined(separator: " of ")
                Terminal.printError(
                    """
                    gattherd: \(numbers) connections of the server are in use, so gateways may get none; raise \
                    max_connections, or use PgBouncer: see 'The network' in docs/fleet.md
                    """
                )
            }
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(error)")
        }
    }
}
