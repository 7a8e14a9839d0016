import CSQLite
import GattherdModel

/// Background work on the file.
extension HistoryFile {
    /// Copies the WAL into the file once it has grown enough; costs nothing otherwise.
    ///
    /// A reader that holds an old snapshot can prevent it; the next attempt follows some pages later. Overlapping
    /// readers would keep the WAL from ever restarting. Once the WAL is large, the checkpoint waits for these readers.
    /// The wait is short, because readers that arrive meanwhile do not need the WAL.
    func checkpointIfDue() {
        let pages = connection.walPages
        // A commit extends the WAL, or restarts it.
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

    /// Writes pending state that no commit has saved, and truncates the WAL.
    func tidyUp() throws(StoreFault) {
        if let outbox, !outbox.isTidy { try commit(tidily: true) { () throws(StoreFault) in } }
        connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
    }

    /// The database's size in bytes, without the WAL.
    var size: Int64 { retention.size }

    /// The number of readings dropped before delivery since the file was opened.
    var undelivered: Int { retention.undelivered }

    /// Checks the clocks, and starts a retention pass.
    func beginPass() throws(StoreFault) {
        try beginPass(clock.reading)
    }

    func beginPass(_ reading: ClockReading) throws(StoreFault) {
        try checkClock(reading)
        if retention.isCaughtUp { try checkClock(reading, isCaughtUp: true) }
        retention.beginPass(try agePlan(reading), uptime: reading.uptime)
    }

    /// True if there are rows to correct, to summarise or to delete.
    var isUpkeepDue: Bool { correction.current != nil || isSumDue || retention.isDue }

    private var isSumDue: Bool { newest.map { rollups.isBehind($0) } ?? false }

    /// Runs one short step of background work.
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

    /// Commits a cursor that no other commit has saved.
    func saveCursor() throws(StoreFault) {
        guard let outbox, outbox.isSaveDue else { return }
        try commit { () throws(StoreFault) in }
    }
}
