import GattherdModel

/// Rebuilds undelivered readings from their samples, extent by extent.
final class ReadingRows {
    /// The maximum number of series, and of streams, whose properties are remembered.
    private static let remembered = 4096

    private let path: String
    private let selectExtents: Statement
    private let selectSamples: Statement
    private let selectMoved: Statement
    private let selectFirst: Statement
    private let selectSeries: Statement
    private var series: [Int64: StoredSeries] = [:]
    /// The streams as they appear in readings, by the series of a reading's metrics.
    private var streams: [[Int64]: StreamDefinition] = [:]

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        path = connection.path
        selectExtents = try Statement(
            """
            SELECT first, last, ts, ts_last FROM outbox
            WHERE first > ?1 - \(Extent.capacity) AND last > ?1 AND first <= ?2 ORDER BY first
            """,
            on: connection
        )
        let columns = "SELECT ts, seq, ix, series, value FROM sample"
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
        selectFirst = try Statement(
            """
            SELECT max(first, ?1 + 1) FROM outbox
            WHERE first > ?1 - \(Extent.capacity) AND last > ?1 ORDER BY first LIMIT 1
            """,
            on: connection
        )
        selectSeries = try Statement(
            """
            SELECT device, profile, stream.stream, source, metric, unit, kind, repeated, boolean
            FROM metric_series AS series JOIN stream ON stream.id = series.stream WHERE series.id = ?1
            """,
            on: connection
        )
    }

    /// Returns the number of the first undelivered reading after `seq`; `nil` without one.
    func first(after seq: Int64) throws(StoreFault) -> Int64? { try selectFirst.firstInteger(binding: seq) }

    /// Returns undelivered readings in order, up to the number `end`, with the times after all corrections.
    func readings(_ request: JournalReader.Request, ending end: Int64) throws(StoreFault) -> [JournalReading] {
        selectExtents.bind(request.after, end)
        defer { selectExtents.reset() }
        var readings: [JournalReading] = []
        while readings.count < request.limit, try selectExtents.step() {
            let first = max(request.after + 1, selectExtents.integer(0))
            let last = min(end, selectExtents.integer(1))
            let times = (selectExtents.integer(2), selectExtents.integer(3))
            if let shift = request.shifts.first, last > shift.after, first <= shift.through {
                selectMoved.bind(times.0, times.1, first, last, shift.shift)
                try read(selectMoved, request, into: &readings)
            } else {
                selectSamples.bind(times.0, times.1, first, last)
                try read(selectSamples, request, into: &readings)
            }
        }
        return readings
    }

    /// Reads the samples of one extent, which `select` selects.
    private func read(
        _ select: borrowing Statement,
        _ request: JournalReader.Request,
        into readings: inout [JournalReading]
    ) throws(StoreFault) {
        defer { select.reset() }
        var reading: StoredReading?
        while try select.step() {
            let place = RowPosition(behind: select)
            let sample = StoredSample(series: try series(select.integer(3)), value: select.value(4))
            if reading?.seq == place.second {
                reading?.samples.append(sample)
                continue
            }
            if let reading { readings.append(typed(reading)) }
            guard readings.count < request.limit else { return }
            let time = Timestamp(microseconds: request.shifts.correctedTime(of: place))
            reading = StoredReading(seq: place.second, time: time, sample)
        }
        if let reading { readings.append(typed(reading)) }
    }

    private func series(_ id: Int64) throws(StoreFault) -> StoredSeries {
        if let known = series[id] { return known }
        if series.count >= Self.remembered { series.removeAll() }
        selectSeries.bind(id)
        defer { selectSeries.reset() }
        guard try selectSeries.step() else {
            throw StoreFault("\(path): samples of a series that is not there", .damaged)
        }
        let found = StoredSeries(id, selectSeries)
        series[id] = found
        return found
    }

    private func typed(_ reading: StoredReading) -> JournalReading {
        var metrics: [StoredSeries] = []
        let samples = reading.samples.map { sample in
            let metric = metrics.firstIndex { $0.id == sample.series.id } ?? metrics.count
            if metric == metrics.count { metrics.append(sample.series) }
            return Sample(metric: metric, value: sample.typedValue)
        }
        return JournalReading(
            seq: reading.seq,
            stream: stream(of: metrics, reading.series),
            time: reading.time,
            source: reading.series.source,
            samples: samples[...]
        )
    }

    private func stream(of metrics: [StoredSeries], _ series: StoredSeries) -> StreamDefinition {
        let key = metrics.map(\.id)
        if let known = streams[key] { return known }
        if streams.count >= Self.remembered { streams.removeAll() }
        let stream = StreamDefinition(
            device: series.device,
            profile: series.profile,
            stream: series.stream,
            metrics: metrics.map(\.metric)
        )
        streams[key] = stream
        return stream
    }
}

/// The properties shared by the samples of a series.
private final class StoredSeries {
    let id: Int64
    let device: String
    let profile: String
    let stream: String
    let source: ReadingSource
    let metric: MetricDescriptor
    let isBoolean: Bool

    init(_ id: Int64, _ row: borrowing Statement) {
        self.id = id
        device = row.text(0)
        profile = row.text(1)
        stream = row.text(2)
        source = ReadingSource(rawValue: row.text(3)) ?? .read
        metric = MetricDescriptor(
            name: row.text(4),
            unit: row.optionalText(5),
            kind: MetricKind(rawValue: row.text(6)) ?? .gauge,
            isRepeated: row.integer(7) != 0
        )
        isBoolean = row.integer(8) != 0
    }
}

private struct StoredSample {
    let series: StoredSeries
    let value: SampleValue

    var typedValue: SampleValue {
        if series.isBoolean, case .integer(let number) = value { return .boolean(number != 0) }
        return value
    }
}

/// One reading with at least one sample.
private struct StoredReading {
    let seq: Int64
    let time: Timestamp
    let series: StoredSeries
    var samples: [StoredSample]

    init(seq: Int64, time: Timestamp, _ sample: StoredSample) {
        self.seq = seq
        self.time = time
        series = sample.series
        samples = [sample]
    }
}
