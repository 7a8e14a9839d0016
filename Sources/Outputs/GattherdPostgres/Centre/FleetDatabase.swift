import GattherdOutputs

/// The central database as its owner sees it: the schema, and the roles of gateways.
package final class FleetDatabase: Sendable {
    /// A refusal or a failure, with the remedy.
    package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String

        package init(_ description: String) {
            self.description = description
        }
    }

    /// The result of ``install(isNew:)``.
    package struct Installation: Hashable, Sendable {
        /// The version before; 0 for none.
        package let before: Int
        package let now: Int
        /// The rows that are still without a partition; `nil` if there are none.
        package var unmoved: UnmovedRows?
    }

    /// A gateway that may write, with the password of its role.
    package struct Credentials: Hashable, Sendable {
        package let role: String
        package let password: String
    }

    /// Step n takes a schema from version n to version n + 1; the first one creates all tables.
    ///
    /// After the first release a step is never edited, only followed by another one.
    static let steps = [FleetTables.tables + FleetLeases.tables + FleetRuns.tables]
    /// A column that schemas of version 1 from before the first release lack.
    static let newestColumn = (table: "gattherd.quantity", name: "stream")
    /// The objects without rows: functions, views and rights.
    ///
    /// Each version creates them again.
    private static let programs = [
        FleetArithmetic.sql, FleetBlocks.sql, FleetHeads.sql, FleetCorrections.sql, FleetReceptions.sql,
        FleetAppend.sql, FleetUpkeep.sql, FleetOverdue.sql, FleetRuns.sql, FleetViews.sql, FleetLeases.sql, rights,
    ]
    /// Continues as the owner of the tables, so that all objects have one owner, with whose rights the functions run.
    ///
    /// The schema itself may belong to another role.
    static let becomeOwner = """
        DO $$ BEGIN EXECUTE format('SET LOCAL ROLE %I', (
            SELECT pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c
            WHERE c.oid = 'gattherd.version'::regclass)); END $$
        """
    /// The functions that gateways may call.
    private static let rights = #"""
        REVOKE ALL ON ALL FUNCTIONS IN SCHEMA gattherd FROM PUBLIC;
        GRANT EXECUTE ON FUNCTION gattherd.floored, gattherd.rfc3339, gattherd.mean TO PUBLIC;
        CREATE OR REPLACE FUNCTION gattherd.admit(role name) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
            EXECUTE format('GRANT USAGE ON SCHEMA gattherd TO %I', role);
            EXECUTE format('GRANT EXECUTE ON FUNCTION gattherd.position, gattherd.skip, gattherd.append, '
                'gattherd.correct, gattherd.maintain, gattherd.report, gattherd.attend, gattherd.exchange_leases TO %I',
                role);
        END $$;
        REVOKE ALL ON FUNCTION gattherd.admit FROM PUBLIC;
        DO $$
        DECLARE role name;
        BEGIN
            FOR role IN
                SELECT g.role FROM gattherd.gateway g JOIN pg_catalog.pg_roles r ON r.rolname = g.role
                WHERE r.rolcanlogin
            LOOP
                PERFORM gattherd.admit(role);
            END LOOP;
        END $$;
        """#
    /// The time for a transaction that changes the schema or moves the rows of a day, and for a page of a long history:
    /// rows of years are sorted first.
    static let longest = Duration.seconds(600)
    /// The time for a query of a few rows, for which a person waits.
    private static let queryLimit = Duration.seconds(60)
    /// The number of rows of a page.
    ///
    /// With the longest texts, a page is a sixteenth of the limit of an answer.
    private static let pageSize = 2000
    /// PostgreSQL 15, which has `UNIQUE NULLS NOT DISTINCT`.
    private static let oldestServer = 150_000

    private let client: PostgresClient
    private let url: PostgresURL

    package init(_ client: PostgresClient, url: PostgresURL) {
        (self.client, self.url) = (client, url)
    }

    /// Makes or upgrades the schema in one transaction, and then moves rows without a partition, day by day.
    ///
    /// - Parameters:
    ///   - isNew: False if there must be a schema already.
    ///   - steps: The steps of the newest version.
    ///   - limit: The time for the rows of one day.
    ///   - progress: Called with the number of moved days, and that of all.
    /// - Returns: The versions.
    /// - Throws: ``Failure`` if the database is unsuitable, of a newer version, or from before the first release.
    package func install(
        isNew: Bool,
        steps: [String] = FleetDatabase.steps,
        limit: Duration = FleetDatabase.longest,
        progress: (Int, Int) -> Void = { _, _ in }
    ) async throws(Failure) -> Installation {
        var installation = try await installSchema(isNew: isNew, steps)
        installation.unmoved = await moveStrandedRows(within: limit, progress)
        return installation
    }

    private func installSchema(isNew: Bool, _ steps: [String]) async throws(Failure) -> Installation {
        try await transaction { (connection) throws(PostgresError) in
            let server = try connection.rows(
                "SELECT current_setting('server_version_num'), current_setting('server_encoding')"
            )
            if let refusal = Self.refusal(of: server.first ?? []) { return .failure(refusal) }
            let before = try Self.version(connection)
            if before == 0, !isNew { return .failure("it has no central history yet; run: gattherd fleet init") }
            if let refusal = try Self.refusal(of: before, newest: steps.count, connection) { return .failure(refusal) }
            try connection.script(before == 0 ? "CREATE SCHEMA IF NOT EXISTS gattherd" : Self.becomeOwner)
            for step in steps[before...] { try connection.script(step) }
            for program in Self.programs { try connection.script(program) }
            try connection.script("DELETE FROM gattherd.version; INSERT INTO gattherd.version VALUES (\(steps.count))")
            return .success(Installation(before: before, now: steps.count))
        }
    }

    private static func refusal(of server: [String?]) -> String? {
        if let number = server.first?.flatMap({ Int($0) }), number < oldestServer {
            return "it is PostgreSQL \(number / 10_000); version 15 or newer is needed"
        }
        guard let encoding = server.last ?? nil, encoding != "UTF8" else { return nil }
        return "its encoding is \(encoding); create it with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
    }

    private static func refusal(
        of version: Int,
        newest: Int,
        _ connection: FleetTransaction
    ) throws(PostgresError) -> String? {
        let remedy = "drop the schema gattherd and run: gattherd fleet init; gateways send again what they still have"
        if version > newest {
            return """
                it is of version \(version), this gattherd knows \(newest): use a newer one; or, if it is from before the \
                first release, \(remedy)
                """
        }
        guard version > 0, try !connection.has(newestColumn.name, of: newestColumn.table) else { return nil }
        return "it is from before the first release: \(remedy)"
    }

    static func version(_ connection: FleetTransaction) throws(PostgresError) -> Int {
        guard try connection.has("gattherd.version") else { return 0 }
        let version = try connection.rows("SELECT n FROM gattherd.version").first?.first ?? nil
        return max(0, version.flatMap { Int($0) } ?? 0)
    }

    /// Returns a random password for a role.
    package static func makePassword() -> String { FleetRole.makePassword() }

    /// Adds a gateway with its role, or gives the role of a known one a new password.
    ///
    /// - Parameters:
    ///   - gateway: The gateway's name.
    ///   - password: The new password; a caller that stores it does so before this call, which ends the old one.
    /// - Returns: The role and the password.
    /// - Throws: ``Failure`` if there is no schema, or if the role has other rights.
    package func add(
        gateway: String,
        password: String = FleetDatabase.makePassword()
    ) async throws(Failure) -> Credentials {
        let role = FleetRole.name(of: gateway)
        return try await transaction { (connection) throws(PostgresError) in
            guard try Self.version(connection) > 0 else {
                return .failure("it has no central history yet; run: gattherd fleet init")
            }
            if try Self.isPrivileged(role, connection) {
                return .failure("the role '\(role)' exists and has other rights: give the gateway another name")
            }
            let secret = try connection.encrypted(password, of: role)
            let statement = try connection.rows(
                """
                SELECT format(CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = $1)
                    THEN 'ALTER ROLE %I LOGIN PASSWORD %L'
                    ELSE 'CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD %L' END, $1, $2)
                """,
                [.text(role), .text(secret)]
            )
            guard let sql = statement.first?.first ?? nil else { return .failure("it does not answer") }
            try connection.script(sql)
            _ = try connection.rows(
                "INSERT INTO gattherd.gateway (name, role) VALUES ($1, $2::text) ON CONFLICT (name) DO UPDATE "
                    + "SET role = excluded.role",
                [.text(gateway), .text(role)]
            )
            _ = try connection.rows("SELECT gattherd.admit($1::text::name)", [.text(role)])
            return .success(Credentials(role: role, password: password))
        }
    }

    /// True if a role is none of a gateway: it may change the schema, or other roles.
    static func isPrivileged(_ role: String, _ connection: FleetTransaction) throws(PostgresError) -> Bool {
        let rows = try connection.rows(
            """
            SELECT EXISTS (
                SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = $1::text::name AND (
                    r.rolsuper OR r.rolcreaterole OR r.rolcreatedb
                    OR EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relowner = r.oid
                        AND c.relnamespace = 'gattherd'::regnamespace)))
            """,
            [.text(role)]
        )
        return rows.first?.first == "t"
    }

    /// Returns the rows of a query as texts.
    package func rows(_ sql: String, _ arguments: [String?] = []) async throws(Failure) -> [[String?]] {
        do throws(PostgresError) {
            return try await client.run(sql, arguments.map { .text($0) }, within: Self.queryLimit)
        } catch {
            throw failure(error)
        }
    }

    /// Passes the rows of a query, as of one moment, to `body` until it returns false; memory holds a page of them.
    package func read(
        _ sql: String,
        _ arguments: [String?],
        _ body: ([String?]) -> Bool
    ) async throws(Failure) {
        do throws(PostgresError) {
            _ = try await client.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            // All digits of numbers, whatever the default of the database or the role is.
            _ = try await client.run("SET LOCAL extra_float_digits = 1")
            let declaration = "DECLARE page NO SCROLL CURSOR FOR \(sql)"
            _ = try await client.run(declaration, arguments.map { .text($0) }, within: Self.longest)
            while true {
                let page = try await client.run("FETCH \(Self.pageSize) FROM page", within: Self.longest)
                guard page.allSatisfy(body), page.count == Self.pageSize else { break }
            }
            _ = try await client.run("COMMIT")
        } catch {
            _ = try? await client.run("ROLLBACK")
            throw failure(error)
        }
    }

    enum Outcome<Value: Sendable>: Sendable {
        case success(Value)
        case failure(String)
    }

    func transaction<Value: Sendable>(
        within limit: Duration = FleetDatabase.longest,
        _ body: @escaping @Sendable (FleetTransaction) throws(PostgresError) -> Outcome<Value>
    ) async throws(Failure) -> Value {
        let outcome: Outcome<Value>
        do throws(PostgresError) {
            outcome = try await client.perform(within: limit) { (connection, call) throws(PostgresError) in
                try FleetTransaction(connection, call).perform(body)
            }
        } catch {
            throw failure(error)
        }
        switch outcome {
        case .success(let value): return value
        case .failure(let text): throw Failure("\(url): \(text)")
        }
    }

    private func failure(_ error: PostgresError) -> Failure {
        Failure(error.sqlState == nil ? OutputFault(error, at: url).detail : "\(url): \(error.detail)")
    }
}
