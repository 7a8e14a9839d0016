import GattherdModel

/// The series of a sample, and the quantity that the series measures.
struct SeriesKey {
    let series: Int64
    let quantity: Int64
}

/// The file's series by stream, metric and source, with the position of the newest row of each.
///
/// A stream is looked up in the database once. After that a reading costs a dictionary look-up, and a row a few
/// comparisons. The entries must not outlive a transaction that was rolled back: see ``removeAll()``.
final class SeriesCatalogue {
    private struct Stream {
        /// Retained, so that its object identity stays unique.
        let definition: StreamDefinition
        let id: Int64
        /// Indices of ``SeriesCatalogue/slots`` by metric and source; `nil` before the first sample.
        var slots = SparseArray<Int>()
    }

    private struct Slot {
        let key: SeriesKey
        var time: Int64 = 0
        var seq: Int64 = 0
        var index: Int64 = 0
        var isTouched = false
        /// True if the newest row is a record of the past, which may be older than the file's newest row.
        var isPast = false
        /// The earliest late sample that this object has recorded in the file.
        var earliest = Int64.max
        /// True if the file records that the series has booleans, which are stored as 1 and 0.
        var isBoolean = false
    }

    private var positions: [ObjectIdentifier: Int] = [:]
    private var streams: [Stream] = []
    private var slots: [Slot] = []
    private var touched: [Int] = []
    private let table: SeriesTable
    private let setHead: Statement
    /// The highest number of a record of the past that may not be the newest row of its series.
    private var newestPast: Int64?

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        table = try SeriesTable(connection)
        setHead = try Statement(
            """
            INSERT INTO head (series, ts, seq, ix) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (series) DO UPDATE SET ts = excluded.ts, seq = excluded.seq, ix = excluded.ix
            WHERE NOT ?5 OR head.ts <= excluded.ts
            """,
            on: connection
        )
    }

    /// Returns the index of a stream; inserts its row in `stream` if necessary.
    func position(of definition: StreamDefinition) throws(StoreFault) -> Int {
        if let position = positions[ObjectIdentifier(definition)] { return position }
        if streams.count >= 4096 { try restart() }
        let id = try table.stream(definition.stream, device: definition.device, profile: definition.profile)
        streams.append(Stream(definition: definition, id: id))
        positions[ObjectIdentifier(definition)] = streams.count - 1
        return streams.count - 1
    }

    /// Returns the keys of a sample's series, and makes the sample the newest row of the series.
    ///
    /// A record of the past does so only if no row has a later time. Among others the last to arrive is the newest,
    /// whatever the clock did.
    func touch(
        stream position: Int,
        metric: Int,
        _ reading: Reading,
        seq: Int64,
        index: Int64,
        _ value: SampleValue
    ) throws(StoreFault) -> SeriesKey {
        let place = metric * ReadingSource.allCases.count + reading.source.ordinal
        let number =
            if let known = streams[position].slots[place] { known } else {
                try addSlot(stream: position, metric: metric, reading, at: place)
            }
        var slot = slots[number]
        if reading.isPast, reading.time.microseconds < slot.earliest {
            try table.recordSample(at: reading.time.microseconds, inSeries: slot.key.series)
            slot.earliest = reading.time.microseconds
        }
        if case .boolean = value, !slot.isBoolean {
            try table.markBoolean(inSeries: slot.key.series)
            slot.isBoolean = true
        }
        move(&slot, to: reading, seq: seq, index: index, number)
        slots[number] = slot
        return slot.key
    }

    /// Makes a sample the newest row of its series, unless it is a record of the past with an earlier time.
    private func move(_ slot: inout Slot, to reading: Reading, seq: Int64, index: Int64, _ number: Int) {
        let time = reading.time.microseconds
        if reading.isPast { newestPast = seq }
        guard !reading.isPast || slot.seq == 0 || time >= slot.time else { return }
        slot.isPast = reading.isPast && (slot.isPast || !slot.isTouched)
        if !slot.isTouched { touched.append(number) }
        slot.isTouched = true
        (slot.time, slot.seq, slot.index) = (time, seq, index)
    }

    /// Writes the positions of the newest rows, once for each changed series.
    func writeHeads() throws(StoreFault) {
        for number in touched {
            let slot = slots[number]
            try setHead.run(binding: slot.key.series, slot.time, slot.seq, slot.index, slot.isPast)
            slots[number].isTouched = false
        }
        touched.removeAll(keepingCapacity: true)
    }

    /// Removes and returns the highest number of a record of the past that was written since the last call.
    func removeNewestPast() -> Int64? { newestPast.take() }

    /// Removes all entries, because their rows may have been rolled back or moved in time.
    func removeAll() {
        newestPast = nil
        positions.removeAll()
        streams.removeAll()
        slots.removeAll()
        touched.removeAll()
    }
}

extension SeriesCatalogue {
    /// Releases old definitions from time to time; each reload of the configuration creates new ones.
    private func restart() throws(StoreFault) {
        try writeHeads()
        let past = newestPast
        removeAll()
        newestPast = past
    }

    private func addSlot(
        stream position: Int,
        metric: Int,
        _ reading: Reading,
        at place: Int
    ) throws(StoreFault) -> Int {
        let stream = streams[position]
        let descriptor = stream.definition.metrics[metric]
        let key = try table.series(
            descriptor,
            of: stream.id,
            named: stream.definition.stream,
            device: stream.definition.device,
            source: reading.source.rawValue,
            first: reading.time
        )
        slots.append(Slot(key: key))
        streams[position].slots.set(slots.count - 1, at: place)
        return slots.count - 1
    }
}

extension ReadingSource {
    fileprivate var ordinal: Int {
        switch self {
        case .notify: 0
        case .indicate: 1
        case .read: 2
        case .advert: 3
        }
    }
}
