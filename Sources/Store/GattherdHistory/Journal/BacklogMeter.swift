import GattherdModel

/// Counts the payload bytes of undelivered readings.
///
/// The backlog at opening is counted step by step afterwards, because a slow card needs some time for a day's backlog.
final class BacklogMeter {
    private static let slice = 4096

    private(set) var bytes: Int64 = 0
    /// The bytes that the open transaction adds.
    private var staged: Int64 = 0
    /// The position up to which the backlog found at opening has been counted.
    private var counted: Int64
    private let last: Int64
    private let select: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        counted = try connection.optionalInteger("SELECT min(first) - 1 FROM outbox") ?? 0
        last = try connection.optionalInteger("SELECT max(first) FROM outbox") ?? 0
        select = try Statement(
            "SELECT first, octets FROM outbox WHERE first > ?1 AND first <= ?2 ORDER BY first LIMIT ?3",
            on: connection
        )
    }

    /// False until all is counted.
    var isExact: Bool { counted >= last }

    /// Counts one slice of the backlog at opening.
    func count() throws(StoreFault) {
        select.bind(counted, last, Int64(Self.slice))
        defer { select.reset() }
        var rows = 0
        while try select.step() {
            counted = select.integer(0)
            bytes += Extent.bytes(select, 1)
            rows += 1
        }
        if rows < Self.slice { counted = last }
    }

    func add(_ count: Int) {
        staged += Int64(count)
    }

    /// Runs a `DELETE` that returns an extent's `first` and `bytes`.
    func delete(_ statement: borrowing Statement) throws(StoreFault) {
        defer { statement.reset() }
        while try statement.step() {
            let first = statement.integer(0)
            if first <= counted || first > last { staged -= Extent.bytes(statement, 1) }
        }
    }

    /// Applies the changes of a committed transaction.
    func didCommit() {
        bytes += staged
        staged = 0
    }

    /// Discards the changes of a failed transaction.
    func didRollBack() {
        staged = 0
    }
}
