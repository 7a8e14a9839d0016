import GattherdGateway
import GattherdPostgres

extension FleetCommands {
    /// The used and the usable connections of the server, if fewer than three are left.
    private static let scarceConnections = """
        SELECT used.n, usable.n FROM
            (SELECT pg_catalog.sum(d.numbackends) AS n FROM pg_catalog.pg_stat_database d) AS used,
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
