import GattherdModel

/// The outcome of background work, and the losses and doubts that it found.
struct HistoryMaintenance {
    /// The size of the WAL in pages of 4 KiB that only a long read transaction explains: 256 MiB.
    static let largeWAL = 65_536

    /// True if the last background work failed.
    private(set) var hasFailed = false
    /// The doubt about the clock that has been reported.
    private(set) var clockDoubt: ClockDoubt?
    /// True if a large WAL has been reported.
    private var isWALReported = false
    /// The number of readings dropped by files that were opened before.
    private var droppedBefore = 0
    /// The number of dropped readings that have been reported.
    private var reportedDrops = 0

    /// Runs background work; reports its first failure, and no further one until it succeeds again.
    ///
    /// - Returns: The fault; `nil` if the work succeeded.
    mutating func run(_ reporter: HistoryReporter, _ body: () throws(StoreFault) -> Void) -> StoreFault? {
        do throws(StoreFault) {
            try body()
            hasFailed = false
            return nil
        } catch {
            if !hasFailed { reporter.maintenanceFailed(error) }
            hasFailed = true
            return error
        }
    }

    /// Reports a change of the doubt about the clock.
    mutating func setClockDoubt(_ doubt: ClockDoubt?, _ reporter: HistoryReporter) {
        let before = clockDoubt
        clockDoubt = doubt
        reporter.clock(doubt, before: before)
    }

    /// Reports once that another program keeps the WAL from being copied and used again.
    mutating func setWALPages(_ pages: Int, _ reporter: HistoryReporter) {
        let isLarge = pages >= Self.largeWAL
        if isLarge, !isWALReported { reporter.walIsLarge(bytes: Int64(pages) * 4096) }
        isWALReported = isLarge || isWALReported && pages >= Self.largeWAL / 2
    }

    /// Keeps the number of readings that a file has dropped.
    mutating func fileWasClosed(dropped: Int) { droppedBefore += dropped }

    /// The number of readings dropped before they were delivered: by all files and from memory.
    func dropped(byFile count: Int, fromMemory others: Int) -> Int { droppedBefore + count + others }

    /// Returns the number of dropped readings that have not been reported; they count as reported then.
    mutating func reportDrops(_ dropped: Int) -> Int {
        defer { reportedDrops = dropped }
        return dropped - reportedDrops
    }
}
