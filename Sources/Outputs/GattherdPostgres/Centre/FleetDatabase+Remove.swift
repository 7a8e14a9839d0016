extension FleetDatabase {
    /// The statements that end the leases of a gateway, so that another one may claim them at once, and its bids.
    ///
    /// Without the runs of its daemons, another board with its name need not wait for their end.
    private static let releases = [
        """
        UPDATE gattherd.lease l SET expires = now(), released = true, reason = 'the gateway was removed'
        FROM gattherd.gateway g WHERE g.name = $1 AND g.id = l.owner AND NOT l.released
        """,
        """
        UPDATE gattherd.lease SET gateways = nullif(array_remove(gateways, $1), '{}') WHERE $1 = ANY (gateways)
        """,
        "DELETE FROM gattherd.lease_bid b USING gattherd.gateway g WHERE g.name = $1 AND g.id = b.gateway",
        "DELETE FROM gattherd.run r USING gattherd.gateway g WHERE g.name = $1 AND g.id = r.gateway",
    ]
    /// Ends the connections of a role, if the command's user may do that, and waits two seconds for it.
    ///
    /// Connections that stay have no rights.
    static let disconnect = """
        SELECT count(pg_terminate_backend(a.pid, 2000)) FROM pg_catalog.pg_stat_activity a
        WHERE a.usename = $1::text::name AND a.datname = current_database()
            AND (pg_has_role(a.usename, 'USAGE') OR pg_has_role('pg_signal_backend'::name, 'USAGE'))
        """

    /// Ends the access of a gateway, its connections and its leases.
    ///
    /// Its history stays, and ``add(gateway:)`` admits it again.
    ///
    /// - Returns: The name of the role.
    package func remove(gateway: String) async throws(Failure) -> String {
        try await transaction { (connection) throws(PostgresError) in
            guard try Self.version(connection) > 0 else {
                return .failure("it has no central history yet; run: gattherd fleet init")
            }
            let roles = try connection.rows("SELECT role FROM gattherd.gateway WHERE name = $1", [.text(gateway)])
            guard let role = roles.first?.first ?? nil else { return .failure("it has no gateway '\(gateway)'") }
            if try Self.isPrivileged(role, connection) {
                return .failure("the role '\(role)' has other rights: lock it out by ALTER ROLE … NOLOGIN")
            }
            guard let sql = try Self.lockingOut(role, connection) else {
                return .failure("the role '\(role)' is missing; run: gattherd fleet add, and this command again")
            }
            try connection.script(sql)
            for statement in Self.releases { _ = try connection.rows(statement, [.text(gateway)]) }
            _ = try connection.rows(Self.disconnect, [.text(role)])
            return .success(role)
        }
    }

    /// The statements that end the rights of a role; `nil` if there is no such role.
    private static func lockingOut(
        _ role: String,
        _ connection: FleetTransaction
    ) throws(PostgresError) -> String? {
        let rows = try connection.rows(
            """
            SELECT format('ALTER ROLE %1$I NOLOGIN; REVOKE USAGE ON SCHEMA gattherd FROM %1$I', r.rolname)
            FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text::name
            """,
            [.text(role)]
        )
        return rows.first?.first ?? nil
    }
}
