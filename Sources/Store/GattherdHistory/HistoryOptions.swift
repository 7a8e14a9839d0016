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
    /// True if readings are kept for delivery until they are acknowledged.
    ///
    /// Readings that arrive while this is false are never delivered.
    public var keepsJournal: Bool
    public var limits = HistoryLimits()
    public var whenFull = WhenFull.deliver
    public var clock: GatewayClock
    /// The time that readings wait before they are delivered unstored; most faults end sooner.
    var patience = Duration.seconds(5)
    /// The time between two attempts to write.
    var pause = Duration.seconds(1)

    public init(path: String, keepsJournal: Bool, clock: GatewayClock) {
        self.path = path
        self.keepsJournal = keepsJournal
        self.clock = clock
    }
}
