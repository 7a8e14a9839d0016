public import GattherdHistory
import GattherdModel

/// Writes samples for other programs.
public struct SampleWriter {
    private let format: ExchangeFormat
    /// The bytes written since the last flush.
    public private(set) var bytes: [UInt8] = []
    /// The current reading, and the number of its elements in each series.
    private var reading: (time: Timestamp, seq: Int64)?
    private var elements: [ObjectIdentifier: Int] = [:]

    public init(_ format: ExchangeFormat) {
        self.format = format
    }

    /// Writes a line.
    ///
    /// - Returns: False if the format cannot represent the sample: line protocol has no unknown values, and no times
    ///   before 1677 or after 2262.
    public mutating func write(_ row: HistoryRow) -> Bool {
        switch format {
        case .json: return writeJSON(row)
        case .line: return writePoint(row)
        }
    }

    /// Removes the written bytes and keeps the memory.
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
    }

    private mutating func writeJSON(_ row: HistoryRow) -> Bool {
        let series = row.series
        bytes += JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("time")
            writer.timestamp(row.time)
            writer.key("seq")
            writer.integer(row.seq)
            for (key, text) in [
                ("device", series.device), ("profile", series.profile), ("stream", series.stream),
                ("metric", series.metric),
            ] {
                writer.key(key)
                writer.string(text)
            }
            writer.key("value")
            writer.value(row.value)
            writer.key("unit")
            writer.optional(series.unit) { $0.string($1) }
            writer.key("source")
            writer.string(series.source)
            writer.key("kind")
            writer.string(series.kind.rawValue)
            writer.key("repeated")
            writer.boolean(series.isRepeated)
            writer.endObject()
        }
        bytes.append(UInt8(ascii: "\n"))
        return true
    }

    /// Writes a point; its tags are ordered by name, as InfluxDB recommends.
    private mutating func writePoint(_ row: HistoryRow) -> Bool {
        let series = row.series
        let element = element(row)
        let (nanoseconds, isBeyond) = row.time.microseconds.multipliedReportingOverflow(by: 1000)
        guard !isBeyond, let value = LineProtocol.field(row.value) else { return false }
        let tags: [(name: String, value: String?)] = [
            ("device", series.device), ("element", element),
            ("kind", series.kind == .gauge ? nil : series.kind.rawValue),
            ("profile", series.profile), ("source", series.source), ("stream", series.stream), ("unit", series.unit),
        ]
        LineProtocol.measure(series.metric, to: &bytes)
        for (name, value) in tags {
            guard let value, !value.isEmpty else { continue }
            bytes += ",\(name)=".utf8
            LineProtocol.escape(value, LineProtocol.inTag, to: &bytes)
        }
        bytes += " value=\(value) \(nanoseconds)\n".utf8
        return true
    }

    /// Returns a tag that distinguishes the elements of one reading; InfluxDB would merge them into one point.
    private mutating func element(_ row: HistoryRow) -> String? {
        guard row.series.isRepeated else { return nil }
        if reading?.time != row.time || reading?.seq != row.seq { elements.removeAll(keepingCapacity: true) }
        reading = (row.time, row.seq)
        let element = elements[ObjectIdentifier(row.series), default: 0]
        elements[ObjectIdentifier(row.series)] = element + 1
        return "\(element)"
    }
}
