import GattherdHistory
package import GattherdModel

/// Collects rows of history up to a limit.
protocol RowCollector {
    /// Adds a row with its time and further `members`; false once no more rows are needed.
    mutating func add(_ time: Timestamp, _ members: (inout JSONWriter) -> Void) -> Bool
}

extension RowCollector {
    mutating func add(_ row: HistoryRow) -> Bool {
        add(row.time) { writer in
            writer.key("seq")
            writer.integer(row.seq)
            writer.key("device")
            writer.string(row.series.device)
            writer.key("metric")
            writer.string(row.series.metric)
            writer.key("value")
            writer.value(row.value)
            writer.key("unit")
            writer.optional(row.series.unit) { $0.string($1) }
            writer.key("source")
            writer.string(row.series.source)
            writer.key("stream")
            writer.string(row.series.stream)
        }
    }

    mutating func add(_ bucket: HistoryBucket) -> Bool {
        add(bucket.time) { writer in
            writer.key("device")
            writer.string(bucket.device)
            writer.key("metric")
            writer.string(bucket.metric)
            writer.key("n")
            writer.integer(bucket.n)
            writer.key("min")
            writer.value(bucket.min)
            writer.key("mean")
            writer.real(bucket.mean)
            writer.key("max")
            writer.value(bucket.max)
            writer.key("unit")
            writer.optional(bucket.unit) { $0.string($1) }
            writer.key("stream")
            writer.string(bucket.stream)
        }
    }
}

/// One page of rows: `{"rows":[…],"next":…}`, where `next` is the time of the first row of the next page.
///
/// All rows of one time are in one page, see ``HistoryRows``.
struct HistoryPage: RowCollector {
    private var rows: HistoryRows

    init(limit: Int) {
        rows = HistoryRows(limit: limit)
    }

    mutating func add(_ time: Timestamp, _ members: (inout JSONWriter) -> Void) -> Bool {
        rows.add(time, members)
    }

    consuming func finish() -> [UInt8] {
        let rows = rows
        return JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("rows")
            writer.array(rows.objects) { $0.raw($1) }
            writer.key("next")
            writer.optional(rows.next) { $0.timestamp($1) }
            if rows.omitted > 0 {
                writer.key("omitted")
                writer.integer(rows.omitted)
            }
            writer.endObject()
        }
    }
}

extension JSONWriter {
    /// Writes a member of an object, unless it has no value.
    package mutating func member(_ name: String, _ text: String?) {
        guard let text else { return }
        key(name)
        string(text)
    }

    package mutating func member(_ name: String, _ number: Int?) {
        guard let number else { return }
        key(name)
        integer(number)
    }
}
