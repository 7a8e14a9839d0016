/// The rows of a history query, ordered by time, up to a number of rows and bytes.
///
/// A page ends between two instants, so that a client that continues at ``next`` neither misses nor repeats a row. The
/// rows of an instant that does not fit as a whole go to the next page. Only the first instant of a page may exceed the
/// limits, up to ``instantSize`` bytes; its further rows are left out and counted in ``omitted``.
package struct HistoryRows: Sendable {
    /// The rows as JSON objects.
    package private(set) var objects: [[UInt8]] = []
    /// The time of the first missing row; `nil` if none is missing.
    package private(set) var next: Timestamp?
    /// The number of rows left out because one instant has too many.
    package private(set) var omitted = 0
    /// The maximum bytes of a page, which the daemon holds in memory for each client.
    private static let size = 1 << 20
    /// The maximum bytes of a page with a single instant.
    private static let instantSize = 4 << 20
    private let limit: Int
    private var bytes = 0
    private var instant: Timestamp?
    /// The number of rows before the instant.
    private var earlier = 0

    package init(limit: Int) {
        self.limit = limit
    }

    /// Adds a row, unless the page is full.
    ///
    /// - Parameters:
    ///   - time: The row's time.
    ///   - members: Writes the object's members after `ts`.
    /// - Returns: False if no more rows are accepted.
    package mutating func add(_ time: Timestamp, _ members: (inout JSONWriter) -> Void) -> Bool {
        if time != instant { (instant, earlier) = (time, objects.count) }
        guard objects.count < limit || earlier == 0 else { return endPage(at: time) }
        let object = Self.object(time, members)
        if bytes + object.count > Self.size, earlier > 0 { return endPage(at: time) }
        guard bytes + object.count <= Self.instantSize || objects.isEmpty else {
            omitted += 1
            return true
        }
        bytes += object.count
        objects.append(object)
        return true
    }

    private mutating func endPage(at time: Timestamp) -> Bool {
        next = time
        objects.removeSubrange(earlier...)
        return false
    }

    private static func object(_ time: Timestamp, _ members: (inout JSONWriter) -> Void) -> [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("ts")
            writer.timestamp(time)
            members(&writer)
            writer.endObject()
        }
    }
}
