public import GattherdModel

/// Rows of history as somebody asked for them, by time, up to a limit.
///
/// They end between two instants, so that whoever goes on with ``next`` misses no row and gets none twice: rows of an
/// instant that does not fit as a whole are left for later. Only an instant that has more rows than the limit goes
/// beyond it.
public struct HistoryRows: Sendable {
    /// Objects of JSON.
    public private(set) var objects: [[UInt8]] = []
    /// The time of the first row that is not there; `nil` when all are.
    public private(set) var next: Timestamp?
    private let limit: Int
    private var instant: Timestamp?
    /// How many rows come before those of the instant.
    private var earlier = 0

    public init(limit: Int) {
        self.limit = limit
    }

    /// Adds a row, unless it is one too many.
    ///
    /// - Parameters:
    ///   - time: The row's time.
    ///   - members: Writes the object's members behind `ts`.
    /// - Returns: False when no more rows are taken.
    public mutating func add(_ time: Timestamp, _ members: (inout JSONWriter) -> Void) -> Bool {
        if time != instant { (instant, earlier) = (time, objects.count) }
        guard objects.count < limit || earlier == 0 else {
            next = time
            objects.removeSubrange(earlier...)
            return false
        }
        objects.append(
            JSONWriter.octets { writer in
                writer.beginObject()
                writer.key("ts")
                writer.timestamp(time)
                members(&writer)
                writer.endObject()
            }
        )
        return true
    }
}
