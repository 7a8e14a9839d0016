import GattherdModel

/// Named integers in the file.
final class StateTable {
    enum Key: String {
        /// The highest number that a reading may have.
        case seq
        /// The link to the sequence file, and the one before; see ``EpochTable``.
        case link
        case linkBefore = "link_before"
        /// The journal has extents only for readings with higher numbers.
        case journalFrom = "journal_from"
        /// The journal may lack extents up to this number, because the consumers of that time had all readings.
        case journalTrimmed = "journal_trimmed"
        /// The highest number of a sample that was deleted by its age, or for its space.
        case lastDeleted = "last_deleted"
        /// The highest number of a stored record with a past time; `head` may have only lower numbers.
        case newestPast = "newest_past"
        /// The highest number of a reading that could not be stored, because the disk failed.
        case unstored
        /// The lowest number of an imported reading; these are below zero.
        case imported
        /// The first instant that the table `minute` does not cover.
        case minutes
        /// The first instant that the table `hour` does not cover.
        case hours
        /// The instants before which samples, minutes and hours may have been deleted; see ``PurgedTimes``.
        case samplesGone = "samples_gone"
        case minutesGone = "minutes_gone"
        case hoursGone = "hours_gone"
        /// The bounds of a wrong clock's time range in which rows may have been deleted too.
        case samplesGoneFrom = "samples_gone_from"
        case samplesGoneTo = "samples_gone_to"
        case minutesGoneFrom = "minutes_gone_from"
        case minutesGoneTo = "minutes_gone_to"
        case hoursGoneFrom = "hours_gone_from"
        case hoursGoneTo = "hours_gone_to"
    }

    /// The prefix of the keys of replay counters.
    private static let replayPrefix = "replay "

    private let select: Statement
    private let upsert: Statement
    private let selectReplay: Statement
    private let raiseReplay: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        select = try Statement("SELECT value FROM state WHERE key = ?1", on: connection)
        upsert = try Statement(
            "INSERT INTO state (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            on: connection
        )
        raiseReplay = try Statement(
            """
            INSERT INTO state (key, value) VALUES (?1, ?2)
            ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)
            """,
            on: connection
        )
        selectReplay = try Statement(
            "SELECT key, value FROM state WHERE key >= 'replay ' AND key < 'replay!'",
            on: connection
        )
    }

    /// Returns the number; 0 if it was never set.
    func value(of key: Key) throws(StoreFault) -> Int64 {
        try optionalValue(of: key) ?? 0
    }

    /// Returns the number; `nil` if it was never set.
    func optionalValue(of key: Key) throws(StoreFault) -> Int64? {
        try select.firstInteger(binding: key.rawValue)
    }

    func set(_ key: Key, to value: Int64) throws(StoreFault) {
        try upsert.run(binding: key.rawValue, value)
    }

    /// Stores the senders' replay counters; a lower counter than the stored one changes nothing.
    func raise(replayMarks marks: [String: UInt32]) throws(StoreFault) {
        for (sender, counter) in marks {
            try raiseReplay.run(binding: Self.replayPrefix + sender, Int64(counter))
        }
    }

    func replayMarks() throws(StoreFault) -> [String: UInt32] {
        defer { selectReplay.reset() }
        var marks: [String: UInt32] = [:]
        while try selectReplay.step() {
            let sender = String(selectReplay.text(0).dropFirst(Self.replayPrefix.count))
            marks[sender] = UInt32(clamping: selectReplay.integer(1))
        }
        return marks
    }
}
