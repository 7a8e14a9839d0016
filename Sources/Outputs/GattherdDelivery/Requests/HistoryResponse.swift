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
    /// - time: The row's time.
    /// - members: Writes the object's members after `ts`.
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

/// The rows of a history query, ordered by time, up to a number of rows and bytes.
///
/// A page ends between two instants, so that a client that continues at ``next`` neither misses nor repeats a row. The
/// rows of an instant that does not fit as a whole go to the next page. Only the first instant of a page may exceed the
/// limits, up to ``instantSize`` bytes; its further rows are left out and counted in ``omitted``.
public struct HistoryRows: Sendable {
    /// The rows as JSON objects.
    public private(set) var objects: [[UInt8]] = []
    /// The time of the first missing row; `nil` if none is missing.
    public private(set) var next: Timestamp?
    /// The number of rows left out because one instant has too many.
    public private(set) var omitted = 0
    /// The maximum bytes of a page, which the daemon holds in memory for each client.
    private static let size = 1 << 20
    /// The maximum bytes of a page with a single instant.
    private static let instantSize = 4 << 20
    private let limit: Int
    private var bytes = 0
    private var instant: Timestamp?
    /// The number of rows before those of the instant.
    private var earlier = 0

    public init(limit: Int) {
        self.limit = limit
    }

    /// Adds a row, unless the page is full.
    ///
    /// - Parameters:
    /// - time: The row's time.
    /// - members: Writes the object's members after `ts`.
    /// - Returns: False if no more rows are accepted.
    public mutating func add(_ time: Timestamp, _ members: (inout JSONWriter) -> Void) -> Bool {
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
