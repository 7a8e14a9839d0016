import GattherdModel

/// Where a sample belongs: its series, and what that measures, whichever way it came.
struct SeriesKey {
    let series: Int64
    let quantity: Int64
}

/// The series of the file by stream, metric and source, and where the newest row of each is.
///
/// A stream is looked up in the database once; after that a row costs a dictionary look-up and two array
/// accesses. Nothing here may outlive a transaction that was rolled back: see ``forget()``.
final class SeriesCatalogue {
    private struct Stream {
        /// Held, so that its identity stays its own.
        let definition: StreamDefinition
        let id: Int64
        /// Indices of ``slots`` by metric and source; -1 before the first sample.
        var slots: [Int]
    }

    private struct Slot {
        let key: SeriesKey
        var time: Int64 = 0
        var seq: Int64 = 0
        var index: Int64 = 0
        var isTouched = false
    }

    private var positions: [ObjectIdentifier: Int] = [:]
    private var streams: [Stream] = []
    private var slots: [Slot] = []
    private var touched: [Int] = []
    private let findStream: Statement
    private let addStream: Statement
    private let findSeries: Statement
    private let addSeries: Statement
    private let findQuantity: Statement
    private let addQuantity: Statement
    private let setHead: Statement

    init(_ connection: Connection) throws(StoreFault) {
        findStream = try Statement(
            "SELECT id FROM stream WHERE device = ?1 AND profile = ?2 AND stream = ?3",
            on: connection
        )
        addStream = try Statement(
            "INSERT INTO stream (device, profile, stream) VALUES (?1, ?2, ?3) RETURNING id",
            on: connection
        )
        findSeries = try Statement(
            """
            SELECT id FROM series
            WHERE stream = ?1 AND metric = ?2 AND unit IS ?3 AND kind = ?4 AND repeated = ?5 AND source = ?6
                AND quantity = ?7
            """,
            on: connection
        )
        addSeries = try Statement(
            """
            INSERT INTO series (stream, metric, unit, kind, repeated, source, quantity)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id
            """,
            on: connection
        )
        findQuantity = try Statement(
            "SELECT id FROM quantity WHERE device = ?1 AND metric = ?2 AND unit IS ?3",
            on: connection
        )
        addQuantity = try Statement(
            "INSERT INTO quantity (device, metric, unit) VALUES (?1, ?2, ?3) RETURNING id",
            on: connection
        )
        setHead = try Statement(
            """
            INSERT INTO head (series, ts, seq, ix) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (series) DO UPDATE SET ts = excluded.ts, seq = excluded.seq, ix = excluded.ix
            """,
            on: connection
        )
    }

    /// The position of a stream, which gets its row in `stream` if it has none.
    func position(of definition: StreamDefinition) throws(StoreFault) -> Int {
        if let position = positions[ObjectIdentifier(definition)] { return position }
        if streams.count >= 4096 { try startOver() }
        let id = try Self.id(findStream, addStream) { statement in
            statement.bind(definition.device, at: 1)
            statement.bind(definition.profile, at: 2)
            statement.bind(definition.stream, at: 3)
        }
        let count = definition.metrics.count * ReadingSource.allCases.count
        streams.append(Stream(definition: definition, id: id, slots: Array(repeating: -1, count: count)))
        positions[ObjectIdentifier(definition)] = streams.count - 1
        return streams.count - 1
    }

    /// The stream's key in the database.
    func streamID(at position: Int) -> Int64 { streams[position].id }

    /// The keys of the series that a sample is part of, whose newest row it becomes.
    func touch(
        stream position: Int,
        metric: Int,
        _ reading: Reading,
        seq: Int64,
        index: Int64
    ) throws(StoreFault) -> SeriesKey {
        let place = metric * ReadingSource.allCases.count + reading.source.ordinal
        var number = streams[position].slots[place]
        if number < 0 {
            number = try addSlot(stream: position, metric: metric, reading.source)
            streams[position].slots[place] = number
        }
        if !slots[number].isTouched { touched.append(number) }
        slots[number].isTouched = true
        slots[number].time = reading.time.microseconds
        slots[number].seq = seq
        slots[number].index = index
        return slots[number].key
    }

    /// Writes where the newest rows are now: once for each series that was touched.
    func writeHeads() throws(StoreFault) {
        for number in touched {
            setHead.bind(slots[number].key.series, at: 1)
            setHead.bind(slots[number].time, at: 2)
            setHead.bind(slots[number].seq, at: 3)
            setHead.bind(slots[number].index, at: 4)
            try setHead.run()
            slots[number].isTouched = false
        }
        touched.removeAll(keepingCapacity: true)
    }

    /// Forgets everything, for the rows may be gone.
    func forget() {
        positions.removeAll()
        streams.removeAll()
        slots.removeAll()
        touched.removeAll()
    }
}

extension SeriesCatalogue {
    /// Reloads of the configuration make new definitions; the old ones are let go now and then.
    private func startOver() throws(StoreFault) {
        try writeHeads()
        forget()
    }

    private func addSlot(stream position: Int, metric: Int, _ source: ReadingSource) throws(StoreFault) -> Int {
        let stream = streams[position]
        let descriptor = stream.definition.metrics[metric]
        let quantity = try Self.id(findQuantity, addQuantity) { statement in
            statement.bind(stream.definition.device, at: 1)
            statement.bind(descriptor.name, at: 2)
            statement.bind(descriptor.unit, at: 3)
        }
        let id = try Self.id(findSeries, addSeries) { statement in
            statement.bind(stream.id, at: 1)
            statement.bind(descriptor.name, at: 2)
            statement.bind(descriptor.unit, at: 3)
            statement.bind(descriptor.kind.rawValue, at: 4)
            statement.bind(descriptor.isRepeated, at: 5)
            statement.bind(source.rawValue, at: 6)
            statement.bind(quantity, at: 7)
        }
        slots.append(Slot(key: SeriesKey(series: id, quantity: quantity)))
        return slots.count - 1
    }

    /// The key that `find` gives, or else the one that `add` makes.
    private static func id(
        _ find: borrowing Statement,
        _ add: borrowing Statement,
        bind: (borrowing Statement) -> Void
    ) throws(StoreFault) -> Int64 {
        bind(find)
        defer { find.reset() }
        if try find.step() { return find.integer(0) }
        bind(add)
        defer { add.reset() }
        _ = try add.step()
        return add.integer(0)
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
