/// How long something is kept.
public enum RetentionPeriod: Hashable, Sendable {
    case forever
    case atLeast(Duration)
}

/// The section `history`.
public struct HistorySettings: Hashable, Sendable {
    /// The section `history.keep`.
    public struct Keep: Hashable, Sendable {
        public var samples = RetentionPeriod.atLeast(.seconds(30 * 86_400))
        public var minutes = RetentionPeriod.atLeast(.seconds(365 * 86_400))
        public var hours = RetentionPeriod.forever

        public init() {}
    }

    /// What becomes of readings while the disk is full.
    public enum WhenFull: String, CaseIterable, Hashable, Sendable {
        /// They are delivered without being stored.
        case deliver
        /// They wait in memory.
        case hold
    }

    /// The section `history.backlog`: what waits for delivery.
    public struct Backlog: Hashable, Sendable {
        public var keep = RetentionPeriod.forever
        /// In octets of payloads; half of the whole size where nothing is said.
        public var maxSize: UInt64 = 1 << 30

        public init() {}
    }

    /// The SQLite file.
    public var path: Located<String>
    /// How long a reading may wait for others to be committed with.
    public var commitInterval = Duration.milliseconds(100)
    public var keep = Keep()
    /// In octets.
    public var maxSize: UInt64 = 2 << 30
    public var backlog = Backlog()
    public var whenFull = WhenFull.deliver

    public init(path: Located<String>) {
        self.path = path
    }
}
