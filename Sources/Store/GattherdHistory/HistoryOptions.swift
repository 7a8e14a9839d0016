public import GattherdModel

/// The handling of readings while the file cannot be written, for example on a full disk.
public enum WhenFull: String, CaseIterable, Hashable, Sendable {
    /// After some seconds, readings are delivered from memory, marked as unstored, and never stored.
    case deliver
    /// Readings wait in the caller's memory, undelivered.
    case hold
}

/// The path and the limits of a history.
public struct HistoryOptions: Sendable {
    /// The database file in a directory that exists; other files are kept beside it.
    public var path: String
    /// The consumers of the journal, for which readings are kept until they are acknowledged.
    ///
    /// Readings that arrive while there is none are never delivered.
    public var consumers: [JournalConsumerOptions]
    public var limits = HistoryLimits()
    public var whenFull = WhenFull.deliver
    public var clock: GatewayClock
    /// The time that readings wait before they are delivered unstored; most faults end sooner.
    var timeout = Duration.seconds(5)
    /// The time between two attempts to write.
    var pause = Duration.seconds(1)
    /// Checks all of a file in which damage was found; called on a thread of its own.
    var check: @Sendable (String) throws(StoreFault) -> Void = { (path) throws(StoreFault) in
        try HistoryDatabase.check(path)
    }

    public init(path: String, consumers: [JournalConsumerOptions], clock: GatewayClock) {
        self.path = path
        self.consumers = consumers
        self.clock = clock
    }
}

/// The retention times and the size limit of a history.
public struct HistoryLimits: Hashable, Sendable {
    /// The retention time of samples and rejects; `nil` keeps them forever.
    public var samples: Duration?
    /// The retention time of minute summaries and events; `nil` keeps them forever.
    public var minutes: Duration?
    /// The retention time of hour summaries; `nil` keeps them forever.
    public var hours: Duration?
    /// The maximum size of the database and its WAL together, in bytes; `nil` without a limit.
    ///
    /// Beyond the limit the oldest rows are deleted, as if all retention times were shorter by the same factor. Here
    /// "forever" counts as one year for samples, 10 years for minutes and 100 years for hours. If undelivered samples
    /// are next, the oldest of them are dropped. Events and rejects have their own share of 1/32 each; they never
    /// evict samples or summaries.
    public var maxSize: Int64?
    /// The time that readings wait for delivery before they are dropped; `nil` without a limit.
    public var backlogAge: Duration?
    /// The maximum size of undelivered payloads in bytes; `nil` without a limit.
    public var backlogSize: Int64?

    public init(
        samples: Duration? = nil,
        minutes: Duration? = nil,
        hours: Duration? = nil,
        maxSize: Int64? = nil
    ) {
        self.samples = samples
        self.minutes = minutes
        self.hours = hours
        self.maxSize = maxSize
    }
}

extension HistoryLimits {
    private static let year = Duration.seconds(365 * 86_400)

    /// The number of 4 KiB pages at which the WAL is copied into the file, and that one step may write.
    var walPages: Int {
        guard let maxSize else { return 4000 }
        return Int(Swift.min(4000, Swift.max(32, maxSize / 4096 / 8)))
    }

    /// The number of used 4 KiB pages above which the oldest rows are deleted; `nil` without a limit.
    var pages: Int64? {
        maxSize.map { size in
            let pages = size / 4096 - Int64(walPages) * 2
            return pages - pages / 16
        }
    }

    func keep(_ kind: PurgeTable.Kind) -> Duration? {
        switch kind {
        case .samples, .rejects: samples
        case .minutes, .events: minutes
        case .hours: hours
        }
    }

    /// Returns the retention time of a table, with a default instead of `nil`, to compare tables.
    func weight(_ kind: PurgeTable.Kind) -> Duration {
        switch kind {
        case .samples, .rejects: samples ?? Self.year
        case .minutes, .events: minutes ?? Self.year * 10
        case .hours: hours ?? Self.year * 100
        }
    }

    /// The interval of retention passes.
    var passInterval: Duration {
        let shortest = [samples, minutes, hours].compactMap(\.self).min() ?? .seconds(60)
        return Swift.min(.seconds(60), Swift.max(.seconds(1), shortest / 16))
    }
}
