import GattherdModel

extension HistoryFile {
    /// Returns the highest number of a reading that is or was in the file.
    static func newestReading(
        _ connection: SQLiteConnection,
        _ state: StateTable
    ) throws(StoreFault) -> Int64 {
        max(
            0,
            try connection.integer("SELECT max(seq) FROM head"),
            // A record of the past is not the newest row of its series.
            try state.value(of: .newestPast),
            // An import may have given all series newer heads with numbers below zero.
            try connection.integer("SELECT max(cursor) FROM consumer"),
            try connection.integer("SELECT max(last) FROM outbox"),
            try connection.integer("SELECT max(id) FROM event"),
            try connection.integer("SELECT max(id) FROM reject"),
            try connection.integer("SELECT max(id) FROM correction")
        )
    }
}
