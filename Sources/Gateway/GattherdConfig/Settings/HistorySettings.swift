/// A period for which rows are kept.
package enum RetentionPeriod: Hashable, Sendable {
    case forever
    case atLeast(Duration)
}

/// The section `history`.
package struct HistorySettings: Hashable, Sendable {
    /// The section `history.keep`.
    package struct Keep: Hashable, Sendable {
        package var samples = RetentionPeriod.atLeast(.seconds(30 * 86_400))
        package var minutes = RetentionPeriod.atLeast(.seconds(365 * 86_400))
        package var hours = RetentionPeriod.forever

        package init() {}
    }

    /// The policy for readings while the disk is full.
    package enum WhenFull: String, CaseIterable, Hashable, Sendable {
        /// Readings are delivered without being stored.
        case deliver
        /// Readings wait in memory.
        case hold
    }

    /// The section `history.backlog`: bounds of the readings that wait for delivery.
    package struct Backlog: Hashable, Sendable {
        package var keep = RetentionPeriod.forever
        /// The most bytes of payloads; by default half of `max_size`.
        package var maxSize: UInt64 = 1 << 30

        package init() {}
    }

    /// The path of the SQLite file.
    package var path: Located<String>
    /// The longest time that a reading waits for a commit.
    package var commitInterval = Duration.milliseconds(100)
    package var keep = Keep()
    /// The largest size of the file, in bytes.
    package var maxSize: UInt64 = 2 << 30
    package var backlog = Backlog()
    package var whenFull = WhenFull.deliver

    package init(path: Located<String>) {
        self.path = path
    }
}
