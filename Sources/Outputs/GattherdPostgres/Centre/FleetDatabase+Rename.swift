extension FleetDatabase {
    /// Gives a gateway another name, with its history, its leases and its role; the password stays.
    ///
    /// Its connections end, because one that stays delivers under either name.
    ///
    /// - Returns: The name of the role.
    package func rename(gateway: String, to name: String) async throws(Failure) -> String {
        let role = try await renameRows(gateway: gateway, to: name)
        // Before the end of the transaction, a gateway could log in by the old name again.
        try? await endConnections(of: role)
        return role
    }

    private func endConnections(of role: String) async throws(Failure) {
        let _: [[String?]] = try await transaction { (connection) throws(PostgresError) in
            .success(try connection.rows(Self.disconnect, [.text(role)]))
        }
    }

    private func renameRows(gateway: String, to name: String) async throws(Failure) -> String {
        let (role, next) = (FleetRole.name(of: gateway), FleetRole.name(of: name))
        return try await transaction { (connection) throws(PostgresError) in
            guard try Self.version(connection) > 0 else {
                return .failure("it has no central history yet; run: gattherd fleet init")
            }
            let found = try connection.rows(
                "SELECT name FROM gattherd.gateway WHERE name IN ($1, $2) OR role = $3::text::name",
                [.text(gateway), .text(name), .text(next)]
            )
            guard found == [[gateway]] else {
                let isKnown = found.contains([gateway])
                return .failure(isKnown ? "it has a gateway '\(name)' already" : "it has no gateway '\(gateway)'")
            }
            _ = try connection.rows(
                """
                UPDATE gattherd.gateway SET name = $2, role = CASE WHEN role = $3::text::name THEN $4::text::name ELSE role END
                WHERE name = $1
                """,
                [.text(gateway), .text(name), .text(role), .text(next)]
            )
            _ = try connection.rows(
                "UPDATE gattherd.lease SET gateways = array_replace(gateways, $1, $2) WHERE $1 = ANY (gateways)",
                [.text(gateway), .text(name)]
            )
            if let sql = try Self.renaming(role, next, connection) { try connection.script(sql) }
            let roles = try connection.rows("SELECT role FROM gattherd.gateway WHERE name = $1", [.text(name)])
            return .success((roles.first?.first ?? nil) ?? next)
        }
    }

    /// The statement that renames a role; `nil` if a person has chosen another role for the gateway.
    private static func renaming(
        _ role: String,
        _ next: String,
        _ connection: FleetTransaction
    ) throws(PostgresError) -> String? {
        let rows = try connection.rows(
            """
            SELECT format('ALTER ROLE %I RENAME TO %I', $1::text, $2::text)
            FROM pg_catalog.pg_roles r JOIN gattherd.gateway g ON g.role = $2::text::name
            WHERE r.rolname = $1::text::name AND $1 <> $2
            """,
            [.text(role), .text(next)]
        )
        return rows.first?.first ?? nil
    }
}
