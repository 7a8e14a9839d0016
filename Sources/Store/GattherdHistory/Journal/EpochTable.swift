import GattherdModel

/// The epochs of the file, the newest last, and its link to the sequence file beside it.
///
/// The link is a random number in both files. It changes with each start and each end, so an older copy of the database
/// has another link than the sequence file, which outlives it. Then a new epoch begins.
final class EpochTable {
    /// The maximum number of epochs that are kept, the newest.
    private static let most = 16
    /// The link of a backup, which no sequence file has.
    static let backupLink: Int64 = 0

    private let connection: SQLiteConnection
    private let state: StateTable
    private let select: Statement
    private let insert: Statement
    /// Inserts the epoch before one that does not continue it: with the last common number as a negative `after`.
    private let insertOrigin: Statement
    /// True if a new epoch was started for a receiver since the file was opened, so that no receiver has numbers of it.
    private(set) var hasStartedAnew = false

    init(_ connection: SQLiteConnection, _ state: StateTable) throws(StoreFault) {
        (self.connection, self.state) = (connection, state)
        select = try Statement("SELECT text, after FROM epoch ORDER BY id DESC", on: connection)
        insert = try Statement(
            "INSERT INTO epoch (text, after) VALUES (lower(hex(randomblob(16))), ?1)",
            on: connection
        )
        insertOrigin = try Statement("INSERT INTO epoch (text, after) VALUES (?1, -?2)", on: connection)
    }

    /// Returns the current epoch with those before.
    func current() throws(StoreFault) -> JournalEpoch {
        let found = try select.rows { row in (text: row.text(0), after: row.integer(1)) }
        guard let last = found.first else {
            throw StoreFault("\(connection.path): the file has no epoch", .damaged)
        }
        let origin = found.first { $0.after < 0 }.map { former in
            JournalEpoch.Origin(former.text, through: Int64(clamping: former.after.magnitude))
        }
        let earlier = found.dropFirst().filter { $0.after >= 0 }.map(\.text)
        return JournalEpoch(last.text, earlier: earlier, after: last.after, origin: origin)
    }

    /// Starts a new epoch if the file is another one than that of the last start, and links it to the sequence file.
    ///
    /// - Parameters:
    ///   - sequence: The source of numbers, whose reservation is written into both files, because numbers up to it are
    ///     assigned without another write.
    ///   - isEmpty: True if no number is in the database.
    ///   - previous: The epoch of the file that this one replaces, if known.
    /// - Throws: ``StoreFault`` if a new epoch is due and cannot be recorded.
    func link(to sequence: SequenceSource, isEmpty: Bool, previous: String?) throws(StoreFault) {
        let (file, last) = (sequence.file, sequence.last)
        let outside = file.link()
        let inside = (now: try state.optionalValue(of: .link), before: try state.optionalValue(of: .linkBefore))
        if inside.now == nil {
            // The file has been created with its first epoch.
            if isEmpty, last > 0 { try startFirst(after: last, previous) }
        } else if outside == nil || outside != inside.now && outside != inside.before {
            try connection.transaction { () throws(StoreFault) in try start(after: last) }
        }
        // Without room for a new link the old one stays.
        let link = Self.newLink()
        try? connection.transaction { () throws(StoreFault) in
            try setLink(link, before: outside)
            try state.set(.seq, to: max(sequence.reserved, state.value(of: .seq)))
        }
        if try state.optionalValue(of: .link) == link { try? file.write(sequence.reserved, link: link) }
    }

    /// Records the link that the sequence file gets next; only in a transaction.
    func setLink(_ link: Int64, before: Int64?) throws(StoreFault) {
        try state.set(.link, to: link)
        try state.set(.linkBefore, to: before ?? link)
    }

    static func newLink() -> Int64 { .random(in: 1 ... .max) }

    /// Starts a new epoch, because a receiver has numbers that the file never had; only in a transaction.
    ///
    /// The file may have used some of them for other entries, so it does not continue the epoch before. Entries up to
    /// `common` are the same in both.
    func startAnew(common: Int64) throws(StoreFault) {
        let former = try current().text
        try connection.execute("DELETE FROM epoch")
        if common > 0 { try insertOrigin.run(binding: former, common) }
        try insert.run(binding: Int64(0))
    }

    /// Records that the epoch of ``startAnew(common:)`` is committed.
    func didStartAnew() { hasStartedAnew = true }

    private func start(after last: Int64) throws(StoreFault) {
        try insert.run(binding: last)
        try ContactTable.removeAll(connection)
        try connection.execute(
            "DELETE FROM epoch WHERE id NOT IN (SELECT id FROM epoch ORDER BY id DESC LIMIT \(Self.most))"
        )
    }

    private func startFirst(after last: Int64, _ previous: String?) throws(StoreFault) {
        let insertPrevious = try Statement("INSERT INTO epoch (text, after) VALUES (?1, 0)", on: connection)
        try connection.transaction { () throws(StoreFault) in
            try connection.execute("DELETE FROM epoch")
            if let previous { try insertPrevious.run(binding: previous) }
            try insert.run(binding: last)
        }
    }
}

extension SQLiteConnection {
    /// Marks this copy of a history, so that a daemon that gets it as its own file starts a new epoch.
    func markAsCopy() throws(StoreFault) {
        try StateTable(self).set(.link, to: EpochTable.backupLink)
        try StateTable(self).set(.linkBefore, to: EpochTable.backupLink)
    }
}
