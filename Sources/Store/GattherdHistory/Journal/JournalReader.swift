import GattherdModel

/// Rebuilds entries from the rows of history.
///
/// Most entries are delivered from memory, see ``JournalTail``. Only entries that wait for long, or over a restart, are
/// read back. A commit therefore writes samples but no payloads.
///
/// A consumer of readings gets them with corrected times. A consumer of everything gets each entry with the time that
/// was recorded first, because it gets the corrections too, as entries of their own.
final class JournalReader {
    struct Request {
        var after: Int64
        var limit: Int
        /// The newest committed entry.
        var head: Int64
        /// The corrections that are not complete: samples of the first are at their old or their corrected times.
        var shifts: [ClockShift]
    }

    private let path: String
    private let samples: ReadingRows
    private let lists: ListRows
    private let corrections: CorrectionTable

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        path = connection.path
        samples = try ReadingRows(connection)
        lists = try ListRows(connection)
        corrections = try CorrectionTable(connection)
    }

    /// Reads entries in order.
    ///
    /// - Throws: ``StoreFault`` when the file cannot be read; `busy` for a consumer of everything while its next
    ///   entries are being corrected.
    func read(_ request: Request, _ content: JournalConsumerOptions.Content) throws(StoreFault) -> JournalBatch {
        guard request.limit > 0 else { return JournalBatch([], through: request.after) }
        var entries: [JournalEntry]
        switch content {
        case .readings:
            let readings = try samples.readings(request, ending: .max)
            entries = readings.map { .reading($0) }
        case .everything: entries = try everything(request)
        }
        let isComplete = entries.count < request.limit
        entries = Array(entries.prefix(request.limit))
        return JournalBatch(entries, through: isComplete ? request.head : entries.last?.seq ?? request.after)
    }

    /// Returns the number of the first entry after `seq`; `nil` without one.
    func first(after seq: Int64, _ content: JournalConsumerOptions.Content) throws(StoreFault) -> Int64? {
        let reading = try samples.first(after: seq)
        guard content == .everything else { return reading }
        var found = [reading]
        found += try lists.entries(after: seq, limit: 1).map(\.seq)
        found += try corrections.entries(after: seq, limit: 1).map(\.seq)
        return found.compactMap(\.self).min()
    }

    /// Returns the first correction after `seq`; `nil` without one.
    func correction(after seq: Int64) throws(StoreFault) -> JournalEntry? {
        try corrections.entries(after: seq, limit: 1).first
    }

    private func everything(_ request: Request) throws(StoreFault) -> [JournalEntry] {
        var request = request
        // The consumer gets later corrections as entries.
        request.shifts = Array(request.shifts.prefix(1))
        let limit = request.limit
        var entries = try lists.entries(after: request.after, limit: limit)
        entries += try corrections.entries(after: request.after, limit: limit)
        // Readings beyond the last of these are not needed yet.
        let end = entries.count < limit ? Int64.max : entries.map(\.seq).sorted()[limit - 1]
        let readings = try samples.readings(request, ending: end)
        entries = (entries + readings.map { .reading($0) }).sorted { $0.seq < $1.seq }
        entries = Array(entries.prefix(limit))
        if let shift = request.shifts.first, entries.contains(where: { shift.covers($0.seq) }) {
            throw StoreFault("\(path): the times of the next entries are being corrected", .busy)
        }
        return try entries.map { (entry) throws(StoreFault) in
            entry.moved(by: .zero - (try corrections.shift(of: entry.seq)))
        }
    }
}

extension JournalEntry {
    /// Returns the entry with another time.
    fileprivate func moved(by distance: Duration) -> JournalEntry {
        guard distance != .zero else { return self }
        switch self {
        case .reading(let reading):
            return .reading(
                JournalReading(
                    seq: reading.seq,
                    stream: reading.stream,
                    time: reading.time.advanced(by: distance),
                    source: reading.source,
                    isStored: reading.isStored,
                    samples: reading.samples
                )
            )
        case .event(let event, let seq):
            let time = event.time.advanced(by: distance)
            let moved = LifecycleEvent(time: time, device: event.device, kind: event.kind, detail: event.detail)
            return .event(moved, seq: seq)
        case .reject(let reject, let seq):
            let moved = Reject(
                time: reject.time.advanced(by: distance),
                device: reject.device,
                characteristic: reject.characteristic,
                payload: reject.payload,
                reason: reject.reason
            )
            return .reject(moved, seq: seq)
        case .correction: return self
        }
    }
}

/// Reads events and rejects by their numbers.
private final class ListRows {
    private let selectEvents: Statement
    private let selectRejects: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        selectEvents = try Statement(
            "SELECT id, ts, device, kind, detail FROM event WHERE id > ?1 ORDER BY id LIMIT ?2",
            on: connection
        )
        selectRejects = try Statement(
            "SELECT id, ts, device, characteristic, octets, reason FROM reject WHERE id > ?1 ORDER BY id LIMIT ?2",
            on: connection
        )
    }

    func entries(after seq: Int64, limit: Int) throws(StoreFault) -> [JournalEntry] {
        let events = try selectEvents.rows(binding: seq, Int64(limit)) { row in
            JournalEntry.event(
                LifecycleEvent(
                    time: Timestamp(microseconds: row.integer(1)),
                    device: row.optionalText(2),
                    kind: row.text(3),
                    detail: row.text(4)
                ),
                seq: row.integer(0)
            )
        }
        let rejects = try selectRejects.rows(binding: seq, Int64(limit)) { row in
            JournalEntry.reject(
                Reject(
                    time: Timestamp(microseconds: row.integer(1)),
                    device: row.text(2),
                    characteristic: row.text(3),
                    payload: row.bytes(4),
                    reason: row.text(5)
                ),
                seq: row.integer(0)
            )
        }
        return events + rejects
    }
}
