import CSQLite
import GattherdModel

/// Background work on the file.
extension HistoryFile {
    /// Copies the WAL into the file once it has grown enough; costs nothing otherwise.
    ///
    /// A reader that keeps an old snapshot can prevent it: then it is tried again some pages later. Readers that
    /// take turns without a pause would keep the log from ever beginning anew: once it is large, these are waited
    /// for, which is not long, for those that come meanwhile do not need the log.
    func checkpointIfDue() {
        let pages = connection.walPages
        // A commit makes the log longer, or else began it anew.
        if pages <= lastWALPages { nextCheckpoint = checkpointPages }
        lastWALPages = pages
        guard pages >= nextCheckpoint else { return }
        if pages >= checkpointPages * 4 {
            connection.checkpoint(SQLITE_CHECKPOINT_RESTART, patience: 50)
        } else {
            connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        }
        nextCheckpoint = pages + checkpointPages / 4
    }

    /// Writes what waits for a commit to take it along, and gives the WAL's space back.
    func tidyUp() throws(StoreFault) {
        if let outbox, !outbox.isTidy { try commit(tidily: true) { () throws(StoreFault) in } }
        connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
    }

    /// The database's size in bytes, without the WAL.
    var size: Int64 { retention.size }

    /// Readings that were given up before anybody got them, since the file was opened.
    var undelivered: Int { retention.undelivered }

    /// Looks at the clocks, and begins to look for what is too old.
    func beginPass() throws(StoreFault) {
        try beginPass(clock.reading)
    }

    func beginPass(_ reading: ClockReading) throws(StoreFault) {
        try checkClock(reading)
        if retention.isCaughtUp { try checkClock(reading, isCaughtUp: true) }
        retention.beginPass(try agePlan(reading), uptime: reading.uptime)
    }

    /// True when there is something to put right, to sum up or to delete.
    var isUpkeepDue: Bool { correction.current != nil || isSumDue || retention.isDue }

    private var isSumDue: Bool { newest.map { rollups.isBehind($0) } ?? false }

    /// Does a little of what nobody waits for, so that nobody has to wait for long.
    func upkeep() throws(StoreFault) {
        if correction.current != nil {
            try restamp()
        } else if let newest, isSumDue {
            try rollups.step(newest)
        } else {
            try retention.step(newest ?? .min)
        }
        checkpointIfDue()
    }

    /// Commits a cursor that no other commit has taken along.
    func saveCursor() throws(StoreFault) {
        guard let outbox, outbox.isSaveDue else { return }
        try commit { () throws(StoreFault) in }
    }
}
