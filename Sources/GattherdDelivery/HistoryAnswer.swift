public import GattherdModel

/// The answer to a ``HistoryRequest``, in pieces that a broker and its clients can bear.
///
/// A piece is `{"chunk":0,"last":false,"rows":[…]}`. When there are more rows than were asked for, the last piece
/// has `"next"`: the time of the first one that is not there, to be asked for with `since`.
public struct HistoryAnswer: Sendable {
    /// A piece is closed when it has grown to this many octets.
    private static let size = 16_384

    private let limit: Int
    private var count = 0
    private var rows = JSONWriter()
    private var finished: [[UInt8]] = []
    private var next: Timestamp?

    public init(limit: Int) {
        self.limit = limit
        rows.beginArray()
    }

    /// Adds a row, unless it is one too many.
    ///
    /// - Parameters:
    ///   - time: The row's time.
    ///   - members: Writes the object's members behind `ts`.
    /// - Returns: False when no more rows are taken.
    public mutating func add(_ time: Timestamp, _ members: (inout JSONWriter) -> Void) -> Bool {
        guard count < limit else {
            next = time
            return false
        }
        if rows.octets.count >= Self.size { close(isLast: false) }
        count += 1
        rows.beginObject()
        rows.key("ts")
        rows.timestamp(time)
        members(&rows)
        rows.endObject()
        return true
    }

    /// The pieces, in order.
    consuming func finish() -> [[UInt8]] {
        close(isLast: true)
        return finished
    }

    private mutating func close(isLast: Bool) {
        rows.endArray()
        finished.append(
            JSONWriter.octets { writer in
                writer.beginObject()
                writer.key("chunk")
                writer.integer(finished.count)
                writer.key("last")
                writer.boolean(isLast)
                if let next {
                    writer.key("next")
                    writer.timestamp(next)
                }
                writer.key("rows")
                writer.raw(rows.octets)
                writer.endObject()
            }
        )
        rows.removeAll()
        rows.beginArray()
    }
}
