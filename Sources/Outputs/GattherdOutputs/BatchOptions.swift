public import GattherdMachines

/// The limits and durations of a batch output.
public struct BatchOptions: Hashable, Sendable {
    /// The maximum number of entries of a batch.
    public var entries = 1000
    /// The maximum number of entries of the first batch; each fast batch doubles it, up to ``entries``.
    ///
    /// A small first batch is acknowledged early, so a slow receiver makes progress although the daemon is killed again
    /// and again.
    public var firstEntries = 16
    /// The bytes at which a batch is full; its last entry may exceed them.
    public var bytes = 1 << 20
    /// The time for which entries gather; a full batch does not wait.
    public var interval = Duration.seconds(1)
    /// The longest time for one batch.
    public var writeTimeout = Duration.seconds(30)
    /// The longest time of a fast batch; one of twice the size is then far from the time-out.
    var fastLimit: Duration { writeTimeout / 4 }
    /// The time after which a failure may be due to the size of the batch; a receiver that is down fails earlier.
    var slowLimit: Duration { writeTimeout / 60 }
    /// The pause while the receiver is unavailable.
    public var backoff = Backoff(minimum: .seconds(1), maximum: .seconds(60))
    /// The pause while a person must change the configuration or the receiver.
    public var misconfiguredBackoff = Backoff(minimum: .seconds(10), maximum: .seconds(300))
    /// The longest pause that a receiver can ask for.
    public var longestPause = Duration.seconds(3600)
    /// The number of entries in a row after which a receiver that refuses them all counts as misconfigured.
    ///
    /// Then one entry is skipped for each pause. So a wrong table or bucket does not cost a backlog.
    public var maximumRefusals = 100
    /// The shortest time between two saves of the cursor, unless ``saveCount`` entries are delivered.
    public var saveInterval = Duration.milliseconds(250)
    public var saveCount: Int64 = 1000
    /// The pause after a failure of the journal.
    public var journalPause = Duration.seconds(1)
    /// The longest time for the end after the last batch: closing, and saving the cursor.
    public var stopLimit = Duration.seconds(2)

    public init() {}
}
