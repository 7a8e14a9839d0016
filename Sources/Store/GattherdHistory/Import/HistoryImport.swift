import CSQLite
public import GattherdModel

/// Imports samples into a history that no daemon has open; creates the history if necessary.
///
/// A sample that is stored already, with the same time, series and value, is skipped; so is one that may have been
/// deleted, see ``DeletedSpans``. Imported readings get numbers below zero: they are not part of the journal and never
/// delivered. An error ends the import; committed samples stay.
public final class HistoryImport {
    /// The number of samples per transaction; the samples of one instant are never divided.
    private static let chunk = 4096
    /// The WAL size in pages at which it is copied into the file.
    private static let walPages = 4000

    /// The number of stored samples.
    public private(set) var stored = 0
    /// The number of skipped samples.
    public private(set) var known = 0
    private var pending: [HistoryRow] = []
    private var keys: [ObjectIdentifier: (series: HistorySeries, key: SeriesKey)] = [:]
    private var lowest: Int64
    /// The latest time of a sample.
    private var newest: Int64
    private let lock: FileLock
    private let connection: SQLiteConnection
    private let state: StateTable
    private let table: SeriesTable
    private let rollups: Rollups
    private let deleted: DeletedSpans
    private let selectKnown: Statement
    private let selectSeries: Statement
    private let insert: Statement
    private let setHead: Statement

    /// Opens the history at `path`.
    ///
    /// - Throws: ``StoreFault``: `inUse` if a daemon has the history.
    public init(path: String) throws(StoreFault) {
        let path = DatabaseName.resolved(path)
        try FileContent.expectHistory(path)
        lock = try FileLock(database: path)
        connection = try HistoryDatabase.open(path)
        state = try StateTable(connection)
        table = try SeriesTable(connection)
        rollups = try Rollups(connection, state)
        rollups.purgedMinutes = try state.purged(.minutes)
        rollups.purgedHours = try state.purged(.hours)
        deleted = try DeletedSpans(connection, state)
        lowest = try state.value(of: .imported)
        newest = try connection.optionalInteger("SELECT max(ts) FROM sample") ?? .min
        selectKnown = try Statement("SELECT series, value FROM sample WHERE ts = ?1", on: connection)
        selectSeries = try Statement(
            """
            SELECT id, quantity FROM metric_series AS series WHERE stream = ?1 AND metric = ?2 AND unit IS ?3 AND source = ?4
            ORDER BY id LIMIT 1
            """,
            on: connection
        )
        insert = try Statement(RowInserts.sample, on: connection)
        // A live sample stays the newest of its instant.
        setHead = try Statement(
            """
            INSERT INTO head (series, ts, seq, ix) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (series) DO UPDATE SET ts = excluded.ts, seq = excluded.seq, ix = excluded.ix
            WHERE head.ts < excluded.ts OR (head.seq < 0 AND head.ts = excluded.ts)
            """,
            on: connection
        )
    }

    /// Adds samples; consecutive ones with the same time, stream and `seq` are one reading.
    public func add(_ rows: some Sequence<HistoryRow>) throws(StoreFault) {
        for row in rows {
            if pending.count >= Self.chunk, pending.last?.time != row.time { try commit() }
            pending.append(row)
        }
    }

    /// Commits the rest and summarises it; the import must not be used afterwards.
    public func finish() throws(StoreFault) {
        try commit()
        connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
    }

    private func commit() throws(StoreFault) {
        guard !pending.isEmpty else { return }
        var plan = ImportPlan()
        try connection.transaction { () throws(StoreFault) in
            try choose(into: &plan)
            try store(plan)
            try rollups.writeLate()
        }
        stored += plan.samples.count
        known += pending.count - plan.samples.count
        lowest -= plan.readings
        newest = max(newest, plan.samples.map(\.ts).max() ?? .min)
        pending.removeAll(keepingCapacity: true)
        while rollups.isBehind(newest) { try rollups.step(newest) }
        if connection.walPages >= Self.walPages { connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE) }
    }

    /// Selects the samples that are not stored yet, one instant at a time.
    private func choose(into plan: inout ImportPlan) throws(StoreFault) {
        var there: [ImportPlan.Content: Int] = [:]
        var seen: Set<ImportPlan.Occurrence> = []
        var instant: Timestamp?
        for row in pending {
            if row.time != instant {
                seen.removeAll(keepingCapacity: true)
                there = try known(at: row.time).merging(plan.contents[row.time] ?? [:]) { $0 + $1 }
                instant = row.time
            }
            let key = try key(of: row.series, at: row.time)
            guard try !deleted.contains(key.quantity, at: row.time.microseconds) else { continue }
            let content = ImportPlan.Content(key.series, row.value)
            let isNew = seen.insert(ImportPlan.Occurrence(content: content, seq: row.seq)).inserted
            if let count = there[content], count > 0 {
                there[content] = count - 1
            } else if isNew || row.series.isRepeated {
                plan.add(row, key, content)
            }
        }
    }

    private func known(at time: Timestamp) throws(StoreFault) -> [ImportPlan.Content: Int] {
        var known: [ImportPlan.Content: Int] = [:]
        selectKnown.bind(time.microseconds)
        defer { selectKnown.reset() }
        while try selectKnown.step() {
            known[ImportPlan.Content(selectKnown.integer(0), selectKnown.value(1)), default: 0] += 1
        }
        return known
    }

    /// Returns the existing series, or a new one.
    ///
    /// Other programs do not state a metric's kind, so the kind in history takes precedence.
    private func key(of series: HistorySeries, at time: Timestamp) throws(StoreFault) -> SeriesKey {
        if let known = keys[ObjectIdentifier(series)] { return known.key }
        let stream = try table.stream(series.stream, device: series.device, profile: series.profile)
        let descriptor = MetricDescriptor(
            name: series.metric,
            unit: series.unit,
            kind: series.kind,
            isRepeated: series.isRepeated
        )
        let key: SeriesKey
        if let existing = try existing(series, stream) {
            key = existing
        } else {
            key = try table.series(
                descriptor,
                of: stream,
                named: series.stream,
                device: series.device,
                source: series.source,
                first: time
            )
        }
        keys[ObjectIdentifier(series)] = (series, key)
        return key
    }

    private func existing(_ series: HistorySeries, _ stream: Int64) throws(StoreFault) -> SeriesKey? {
        selectSeries.bind(stream, series.metric, series.unit, series.source)
        defer { selectSeries.reset() }
        guard try selectSeries.step() else { return nil }
        return SeriesKey(series: selectSeries.integer(0), quantity: selectSeries.integer(1))
    }

    private func store(_ plan: ImportPlan) throws(StoreFault) {
        let base = lowest - plan.readings
        var heads: [Int64: ImportPlan.Sample] = [:]
        var firsts: [Int64: Int64] = [:]
        for sample in plan.samples {
            try insert.run(binding: sample.ts, base + sample.reading, sample.index, sample.key.series, sample.value)
            if sample.ts < rollups.end { rollups.addLate(sample.value, of: sample.key.quantity, at: sample.ts) }
            firsts[sample.key.series] = min(sample.ts, firsts[sample.key.series] ?? .max)
            if heads[sample.key.series].map({ $0.ts <= sample.ts }) ?? true { heads[sample.key.series] = sample }
        }
        for (series, sample) in heads {
            try setHead.run(binding: series, sample.ts, base + sample.reading, sample.index)
        }
        for (series, time) in firsts { try table.recordSample(at: time, inSeries: series) }
        if plan.readings > 0 { try state.set(.imported, to: base) }
    }
}
