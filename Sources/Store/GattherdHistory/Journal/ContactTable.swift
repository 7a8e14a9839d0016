import GattherdModel

/// The limits of what receivers that keep the cursor can have, from their last contacts in earlier runs.
///
/// A receiver gets entries only after a contact in the same run. So after runs without a contact it has none of theirs;
/// one that has more shows that an older copy of the database and of its sequence file is in use.
///
/// The first run of a file counts as one with a contact of all receivers, until one of them is reached.
final class ContactTable {
    private static let prefix = "contact "
    /// The name that stands for all receivers until the first contact of one.
    static let anyone = ""
    /// The limit of a receiver that may have all entries of the run, until the next run starts.
    private static let unlimited: Int64 = -1
    private static let rows = "key >= '\(prefix)' AND key < 'contact!'"

    private let connection: SQLiteConnection
    private let select: Statement
    private let upsert: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        self.connection = connection
        select = try Statement("SELECT key, value FROM state WHERE \(Self.rows)", on: connection)
        upsert = try Statement(
            "INSERT INTO state (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            on: connection
        )
    }

    /// Reads the highest numbers that receivers without a contact in this run can have.
    ///
    /// - Parameters:
    ///   - start: The last number before this run.
    ///   - isNewRun: False if the file is only opened again.
    /// - Returns: The numbers by consumer; none for a consumer whose receiver was never reached, or that of ``anyone``.
    /// - Throws: ``StoreFault`` if the file cannot be read.
    func limits(before start: Int64, isNewRun: Bool) throws(StoreFault) -> [String: Int64] {
        let found = try select.rows { row in
            (consumer: String(row.text(0).dropFirst(Self.prefix.count)), limit: row.integer(1))
        }
        var limits: [String: Int64] = [:]
        for row in found where row.limit != Self.unlimited || isNewRun {
            limits[row.consumer] = row.limit == Self.unlimited ? start : row.limit
        }
        // Without room for a limit, it is counted from the start of the next run.
        try? connection.transaction { () throws(StoreFault) in
            for row in found where row.limit == Self.unlimited && isNewRun { try set(row.consumer, to: start) }
        }
        return limits
    }

    /// Records that the file is new, so that this run counts as one with a contact.
    func recordCreation() {
        // Without room, the first limit is that of the first contact.
        try? connection.transaction { () throws(StoreFault) in try set(Self.anyone, to: Self.unlimited) }
    }

    /// Records that the receiver of a consumer gets entries from now on; only in a transaction.
    func recordContact(of consumer: String) throws(StoreFault) {
        try connection.execute("DELETE FROM state WHERE key = '\(Self.prefix + Self.anyone)'")
        try set(consumer, to: Self.unlimited)
    }

    private func set(_ consumer: String, to limit: Int64) throws(StoreFault) {
        try upsert.run(binding: Self.prefix + consumer, limit)
    }

    /// Removes the limits of a file that is another one than that of the last start; only in a transaction.
    static func removeAll(_ connection: SQLiteConnection) throws(StoreFault) {
        try connection.execute("DELETE FROM state WHERE \(rows)")
    }
}
