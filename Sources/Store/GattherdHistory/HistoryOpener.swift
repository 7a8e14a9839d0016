import GattherdLog
import GattherdModel

/// Opens the file, and after a fault opens it again or a new one in its place.
struct HistoryOpener {
    /// True if an earlier file was missing or empty when it was opened.
    private(set) var isNewAfterLoss = false
    private let options: HistoryOptions
    private let log: Log
    private let reporter: HistoryReporter
    private let tail: JournalTail
    /// The state that each opening passes on to the next one; `nil` until the lock was acquired.
    private var carriedOver: HistoryFile.CarriedOver?
    /// True after a damaged file was moved aside, until a new one is open: the missing file is not reported as a loss.
    private var isMovedAside = false
    /// True while the WAL of a file that was deleted or replaced may be there.
    private var hasRemains = false

    init(_ options: HistoryOptions, _ tail: JournalTail, _ log: Log, _ reporter: HistoryReporter) {
        self.options = options
        self.tail = tail
        self.log = log
        self.reporter = reporter
    }

    /// Opens the file, or creates it.
    ///
    /// - Returns: The open file.
    /// - Throws: ``StoreFault``, `damaged` when the file must be moved aside.
    mutating func open() throws(StoreFault) -> HistoryFile {
        try moveRemainsAside()
        try FileContent.expectHistory(options.path)
        let carriedOver = try lock()
        let lost = lostMark
        let file = try HistoryFile(
            path: options.path,
            consumers: options.consumers,
            limits: options.limits,
            carriedOver: carriedOver,
            clock: options.clock,
            log: log
        )
        self.carriedOver?.sequence = file.sequence
        self.carriedOver?.epoch = try file.epoch().text
        if let lost, !isMovedAside {
            isNewAfterLoss = true
            reporter.lost(options.path, mark: lost)
        }
        isMovedAside = false
        return file
    }

    /// Moves the damaged file aside, so that the next opening creates a new one.
    mutating func moveAside(_ fault: StoreFault) throws(StoreFault) {
        let place = try DamagedFile(path: options.path).moveAside(at: options.clock.now())
        isMovedAside = true
        reporter.movedAside(to: place, fault)
    }

    /// Records that another program has deleted or replaced the file; the next opening moves its WAL aside.
    mutating func expectRemains() {
        hasRemains = true
    }

    private mutating func moveRemainsAside() throws(StoreFault) {
        guard hasRemains else { return }
        try DamagedFile(path: options.path).moveRemainsAside(at: options.clock.now())
        hasRemains = false
    }

    /// Releases the lock.
    mutating func close() {
        carriedOver = nil
    }

    /// Acquires the lock once, and keeps it.
    private mutating func lock() throws(StoreFault) -> HistoryFile.CarriedOver {
        if let carriedOver { return carriedOver }
        let first = HistoryFile.CarriedOver(lock: try FileLock(database: options.path), tail: tail)
        carriedOver = first
        return first
    }

    /// The last number of a missing or empty history, read from the sequence file; otherwise `nil`.
    private var lostMark: Int64? {
        guard FileContent(options.path) == .nothing else { return nil }
        guard case .mark(let mark) = SequenceFile(path: options.path + "-seq").read(), mark > 0 else { return nil }
        return mark
    }
}
