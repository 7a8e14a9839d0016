public import GattherdModel

/// The response to a ``HistoryRequest``, in pieces of a bounded size for brokers and clients.
///
/// A piece is `{"chunk":0,"last":false,"rows":[…]}`. If more rows exist, the last piece has `"next"`: the time of the
/// first missing row, for `since` of the next request. Rows of one instant stay in one response, see ``HistoryRows``.
public struct HistoryResponse: Sendable {
    /// The size in bytes at which a piece is closed.
    private static let size = 16_384

    private var rows: HistoryRows

    public init(limit: Int) {
        rows = HistoryRows(limit: limit)
    }

    /// Adds a row, unless the page is full.
    ///
    /// - Parameters:
    ///   - time: The row's time.
    ///   - members: Writes the object's members after `ts`.
    /// - Returns: False if no more rows are accepted.
    public mutating func add(_ time: Timestamp, _ members: (inout JSONWriter) -> Void) -> Bool {
        rows.add(time, members)
    }

    /// The pieces, in order.
    consuming func finish() -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = rows.objects[...]
        repeat {
            let objects = Self.piece(of: rest)
            rest = rest.dropFirst(objects.count)
            pieces.append(Self.bytes(objects, of: rows, chunk: pieces.count, isLast: rest.isEmpty))
        } while !rest.isEmpty
        return pieces
    }

    /// The first rows, up to the one that fills the piece.
    private static func piece(of rows: ArraySlice<[UInt8]>) -> ArraySlice<[UInt8]> {
        var room = size
        return rows.prefix { object in
            defer { room -= object.count + 1 }
            return room > 0
        }
    }

    private static func bytes(
        _ objects: ArraySlice<[UInt8]>,
        of rows: HistoryRows,
        chunk: Int,
        isLast: Bool
    ) -> [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("chunk")
            writer.integer(chunk)
            writer.key("last")
            writer.boolean(isLast)
            if isLast, let next = rows.next {
                writer.key("next")
                writer.timestamp(next)
            }
            if isLast, rows.omitted > 0 {
                writer.key("omitted")
                writer.integer(rows.omitted)
            }
            writer.key("rows")
            writer.array(objects) { $0.raw($1) }
            writer.endObject()
        }
    }
}
