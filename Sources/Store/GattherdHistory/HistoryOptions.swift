/// What becomes of readings while the file cannot be written: the disk is full, or worse.
public enum WhenFull: String, CaseIterable, Hashable, Sendable {
    /// Once that has lasted for some seconds they are delivered from memory, marked, and never stored.
    case deliver
    /// They wait in the caller's memory; nothing is delivered meanwhile.
    case hold
}

/// Where history is, and what is kept in it for how long.
public struct HistoryOptions: Sendable {
    /// The database file in a directory that exists; other files are kept beside it.
    public var path: String
    /// Readings are kept for delivery until they are acknowledged.
    ///
    /// Those that come in while this is false are never delivered.
    public var keepsLog: Bool
    public var limits = HistoryLimits()
    public var whenFull = WhenFull.deliver
    public var clock: GatewayClock
    /// How long readings are held before they are delivered without being stored: much of what fails is well soon.
    var patience = Duration.seconds(5)
    /// The time between two tries.
    var pause = Duration.seconds(1)

    public init(path: String, keepsLog: Bool, clock: GatewayClock) {
        self.path = path
        self.keepsLog = keepsLog
        self.clock = clock
    }
}
