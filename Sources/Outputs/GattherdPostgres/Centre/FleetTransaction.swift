/// Statements of one transaction.
struct FleetTransaction {
    private let connection: PostgresConnection
    private let call: PostgresClient.Call

    init(_ connection: PostgresConnection, _ call: PostgresClient.Call) {
        (self.connection, self.call) = (connection, call)
    }

    /// Lets one command at a time change the schema or its rights, because all of them change the same catalogue rows.
    private static let lock = "SELECT pg_advisory_xact_lock(1195463752, 0)"
    /// Finds no functions and operators of others, which would run with the rights of the command's user.
    private static let searchPath = "SET LOCAL search_path = pg_catalog, pg_temp"

    /// Runs `body` between BEGIN and COMMIT, while no other command does.
    ///
    /// Behind the lock, statements must see the changes of the command before.
    func perform<Value>(_ body: (FleetTransaction) throws(PostgresError) -> Value) throws(PostgresError) -> Value {
        try script("BEGIN ISOLATION LEVEL READ COMMITTED")
        do throws(PostgresError) {
            try script(Self.searchPath)
            try script(Self.lock)
            let value = try body(self)
            try commit()
            return value
        } catch {
            try? script("ROLLBACK")
            throw error
        }
    }

    /// Commits; without an answer, it is not known whether the server has done so.
    private func commit() throws(PostgresError) {
        do throws(PostgresError) {
            try script("COMMIT")
        } catch {
            guard error.sqlState == nil else { throw error }
            throw PostgresError(error.kind, "\(error.detail); the change may have been made, so repeat the command")
        }
    }

    func script(_ sql: String) throws(PostgresError) {
        try connection.script(sql) { call.mayContinue }
    }

    func rows(_ sql: String, _ parameters: [PostgresParameter] = []) throws(PostgresError) -> [[String?]] {
        try connection.run(sql, parameters) { call.mayContinue }
    }

    func has(_ table: String) throws(PostgresError) -> Bool {
        try rows("SELECT to_regclass($1) IS NOT NULL", [.text(table)]).first?.first == "t"
    }

    func has(_ column: String, of table: String) throws(PostgresError) -> Bool {
        try rows(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2)",
            [.text(table), .text(column)]
        ).first?.first == "t"
    }

    func encrypted(_ password: String, of role: String) throws(PostgresError) -> String {
        try connection.encrypted(password, of: role)
    }
}
