/// How long history keeps what, and how large its file may grow.
public struct HistoryLimits: Hashable, Sendable {
    /// How long samples and rejects are kept; `nil` for ever.
    public var samples: Duration?
    /// How long summaries of minutes, and events, are kept; `nil` for ever.
    public var minutes: Duration?
    /// How long summaries of hours are kept; `nil` for ever.
    public var hours: Duration?
    /// The size of the database and its write-ahead log together, in octets; `nil` for any.
    ///
    /// Beyond it the oldest rows go: as if everything were kept for a shorter time, by the same factor, where
    /// "for ever" counts as a year for samples, 10 for minutes and 100 for hours. When samples are next that
    /// have not been delivered, the oldest of those are given up. Events and rejects have 1/32 of it each for
    /// themselves; samples and summaries do not go for them.
    public var maxSize: Int64?
    /// How long readings wait for delivery before they are given up; `nil` for ever.
    public var backlogAge: Duration?
    /// The octets that the payloads of those that wait may take; `nil` for any number.
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

    /// Pages of 4 KiB after which the write-ahead log is copied into the file, and that one step may write.
    var logPages: Int {
        guard let maxSize else { return 4000 }
        return Int(Swift.min(4000, Swift.max(32, maxSize / 4096 / 8)))
    }

    /// Pages of 4 KiB in use above which the oldest rows go; `nil` without a limit.
    var pages: Int64? {
        maxSize.map { size in
            let pages = size / 4096 - Int64(logPages) * 2
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

    /// How long it would be kept if there were room, for comparing.
    func weight(_ kind: PurgeTable.Kind) -> Duration {
        switch kind {
        case .samples, .rejects: samples ?? Self.year
        case .minutes, .events: minutes ?? Self.year * 10
        case .hours: hours ?? Self.year * 100
        }
    }

    /// How often it is worth looking for rows that are too old.
    var passInterval: Duration {
        let shortest = [samples, minutes, hours].compactMap(\.self).min() ?? .seconds(60)
        return Swift.min(.seconds(60), Swift.max(.seconds(1), shortest / 16))
    }
}
