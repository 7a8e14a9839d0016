/// The retention times and the size limit of a history.
public struct HistoryLimits: Hashable, Sendable {
    /// The retention time of samples and rejects; `nil` for ever.
    public var samples: Duration?
    /// The retention time of minute summaries and events; `nil` for ever.
    public var minutes: Duration?
    /// The retention time of hour summaries; `nil` for ever.
    public var hours: Duration?
    /// The size of the database and its WAL together, in bytes; `nil` for any.
    ///
    /// Beyond it the oldest rows go: as if everything were kept for a shorter time, by the same factor, where
    /// "for ever" counts as a year for samples, 10 for minutes and 100 for hours. When samples are next that
    /// have not been delivered, the oldest of those are given up. Events and rejects have 1/32 of it each for
    /// themselves; samples and summaries do not go for them.
    public var maxSize: Int64?
    /// The time for which readings wait for delivery before they are dropped; `nil` for ever.
    public var backlogAge: Duration?
    /// The bytes that the payloads of those that wait may take; `nil` for any number.
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

    /// Pages of 4 KiB after which the WAL is copied into the file, and that one step may write.
    var walPages: Int {
        guard let maxSize else { return 4000 }
        return Int(Swift.min(4000, Swift.max(32, maxSize / 4096 / 8)))
    }

    /// Pages of 4 KiB in use above which the oldest rows go; `nil` without a limit.
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

    /// Returns the retention time of a table as if it had one, to compare tables.
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
