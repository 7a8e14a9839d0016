import GattherdModel

/// Rebuilds undelivered readings from their samples, byte for byte.
///
/// Most readings are delivered from memory, see ``JournalTail``. Only readings that wait for long, or over a restart,
/// are read back. A commit therefore writes samples but no payloads.
final class JournalReader {
    private let path: String
    private let selectExtents: Statement
    private let selectSamples: Statement
    private let selectMoved: Statement
    private let selectSeries: Statement
    private var known: [Int64: StoredSeries] = [:]

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        path = connection.path
        selectExtents = try Statement(
            "SELECT first, last, ts, ts_last FROM outbox WHERE last > ?1 ORDER BY first",
            on: connection
        )
        let columns = "SELECT seq, ix, ts, series, value FROM sample"
        selectSamples = try Statement(
            "\(columns) WHERE ts BETWEEN ?1 AND ?2 AND seq BETWEEN ?3 AND ?4 ORDER BY seq, ix",
            on: connection
        )
        selectMoved = try Statement(
            """
            \(columns) WHERE ts BETWEEN ?1 AND ?2 AND seq BETWEEN ?3 AND ?4
            UNION \(columns) WHERE ts BETWEEN ?1 + ?5 AND ?2 + ?5 AND seq BETWEEN ?3 AND ?4 ORDER BY seq, ix
            """,
            on: connection
        )
        selectSeries = try Statement(
            """
            SELECT device, stream.stream, source, metric, repeated, boolean
            FROM metric_series AS series JOIN stream ON stream.id = series.stream WHERE series.id = ?1
            """,
            on: connection
        )
    }

    /// Reads undelivered readings in order.
    ///
    /// - Parameters:
    ///   - seq: The number after which to start.
    ///   - limit: The maximum number of readings.
    ///   - shift: The correction in progress: its samples are at their old or their corrected times.
    /// - Returns: The readings, with their original bytes.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    func readings(after seq: Int64, limit: Int, _ shift: ClockShift?) throws(StoreFault) -> [JournalReading] {
        selectExtents.bind(seq)
        defer { selectExtents.reset() }
        var readings: [JournalReading] = []
        while readings.count < limit, try selectExtents.step() {
            let (first, last) = (selectExtents.integer(0), selectExtents.integer(1))
            let (start, end) = (selectExtents.integer(2), selectExtents.integer(3))
            if let shift, last > shift.start.seq, first <= shift.end.seq {
                selectMoved.bind(start, end, max(seq + 1, first), last, shift.shift)
                try read(selectMoved, limit, into: &readings)
            } else {
                selectSamples.bind(start, end, max(seq + 1, first), last)
                try read(selectSamples, limit, into: &readings)
            }
        }
        return readings
    }

    /// Reads the samples of one extent, which `select` selects.
    private func read(
        _ select: borrowing Statement,
        _ limit: Int,
        into readings: inout [JournalReading]
    ) throws(StoreFault) {
        defer { select.reset() }
        var reading: StoredReading?
        while try select.step() {
            let sample = StoredSample(series: try series(select.integer(3)), value: select.value(4))
            if reading?.seq == select.integer(0) {
                reading?.samples.append(sample)
                continue
            }
            if let reading { readings.append(reading.encoded) }
            let time = Timestamp(microseconds: select.integer(2))
            reading = readings.count < limit ? StoredReading(select.integer(0), time, sample) : nil
            if reading == nil { return }
        }
        if let reading { readings.append(reading.encoded) }
    }

    private func series(_ id: Int64) throws(StoreFault) -> StoredSeries {
        if let series = known[id] { return series }
        if known.count >= 4096 { known.removeAll() }
        selectSeries.bind(id)
        defer { selectSeries.reset() }
        guard try selectSeries.step() else {
            throw StoreFault("\(path): samples of a series that is not there", .damaged)
        }
        let series = StoredSeries(selectSeries)
        known[id] = series
        return series
    }
}

/// The properties shared by the samples of a series.
private final class StoredSeries {
    let device: String
    let stream: String
    let source: String
    let key: JSONKey
    let isRepeated: Bool
    let isBoolean: Bool

    init(_ row: borrowing Statement) {
        device = row.text(0)
        stream = row.text(1)
        source = row.text(2)
        key = JSONKey(row.text(3))
        isRepeated = row.integer(4) != 0
        isBoolean = row.integer(5) != 0
    }
}

private struct StoredSample {
    let series: StoredSeries
    let value: SampleValue

    func writeValue(to writer: inout JSONWriter) {
        if series.isBoolean, case .integer(let number) = value { return writer.boolean(number != 0) }
        writer.value(value)
    }
}

/// One reading with at least one sample.
private struct StoredReading {
    let seq: Int64
    let time: Timestamp
    let series: StoredSeries
    var samples: [StoredSample]

    init(_ seq: Int64, _ time: Timestamp, _ sample: StoredSample) {
        self.seq = seq
        self.time = time
        series = sample.series
        samples = [sample]
    }

    var encoded: JournalReading {
        let payload = JSONWriter.bytes(reserving: 192) { writer in
            writer.beginReading(seq: seq, time: time, source: series.source)
            for (index, sample) in samples.enumerated() where isFirst(index) { write(sample.series, to: &writer) }
            writer.endObject()
        }
        return JournalReading(seq: seq, device: series.device, stream: series.stream, payload: payload)
    }

    private func isFirst(_ index: Int) -> Bool {
        !samples[..<index].contains { $0.series === samples[index].series }
    }

    /// Writes a metric as ``Reading/writeJSON(seq:samples:isStored:to:)`` does.
    private func write(_ metric: StoredSeries, to writer: inout JSONWriter) {
        let samples = samples.filter { $0.series === metric }
        writer.key(metric.key)
        if metric.isRepeated { writer.beginArray() }
        for sample in metric.isRepeated ? samples : Array(samples.prefix(1)) { sample.writeValue(to: &writer) }
        if metric.isRepeated { writer.endArray() }
    }
}
