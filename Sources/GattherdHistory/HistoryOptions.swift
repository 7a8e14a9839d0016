public import GattherdModel

/// Where history is, and what is kept in it for how long.
public struct HistoryOptions: Sendable {
    /// The database file in a directory that exists; other files are kept beside it.
    public var path: String
    /// Readings are kept for delivery until they are acknowledged.
    ///
    /// Those that come in while this is false are never delivered.
    public var keepsLog: Bool
    public var limits = HistoryLimits()
    /// The wall clock.
    public var now: @Sendable () -> Timestamp

    public init(path: String, keepsLog: Bool, now: @escaping @Sendable () -> Timestamp) {
        self.path = path
        self.keepsLog = keepsLog
        self.now = now
    }
}
