public import GattherdModel

/// Something that history went through, and that the world should hear of.
public enum HistoryNotice: Hashable, Sendable {
    /// Readings that nobody had got yet were given up, because the file would have grown too large.
    case backlogDropped(readings: Int)
    /// The file was damaged: it is at another path now, and a new one was begun.
    case movedAside(to: String, error: String)

    /// What an event of the kind `history` says of it.
    public var members: KeyValuePairs<String, SampleValue?> {
        switch self {
        case .backlogDropped(let readings): ["state": .text("backlog_dropped"), "readings": .integer(Int64(readings))]
        case .movedAside(let path, let error):
            ["state": .text("moved_aside"), "path": .text(path), "error": .text(error)]
        }
    }
}

/// Where history stands, for people.
public struct HistoryStatus: Hashable, Sendable {
    /// The database's size in octets, without the write-ahead log.
    public var size: Int64 = 0
    /// Readings that were given up before anybody got them, since the start.
    public var undelivered = 0
}
