import GattherdModel

/// Writes the rows that the views show: samples, rejects and events.
final class RowInserts {
    /// The maximum stored size of a payload in bytes; a characteristic has at most 512.
    private static let longestPayload = 4096
    static let sample = "INSERT INTO sample (ts, seq, ix, series, value) VALUES (?1, ?2, ?3, ?4, ?5)"

    private let insertSample: Statement
    private let insertReject: Statement
    private let insertEvent: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        insertSample = try Statement(Self.sample, on: connection)
        insertReject = try Statement(
            "INSERT INTO reject (id, ts, device, characteristic, octets, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            on: connection
        )
        insertEvent = try Statement(
            "INSERT INTO event (id, ts, device, kind, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
            on: connection
        )
    }

    /// Inserts the sample with the number `index` of a reading.
    func insert(
        _ value: SampleValue,
        of series: Int64,
        at time: Timestamp,
        seq: Int64,
        index: Int64
    ) throws(StoreFault) {
        try insertSample.run(binding: time.microseconds, seq, index, series, value)
    }

    /// Inserts a rejected payload with its reason, both truncated to a row's limits.
    func insert(_ reject: Reject, seq: Int64) throws(StoreFault) {
        let isLong = reject.payload.count > Self.longestPayload
        try insertReject.run(
            binding: seq,
            reject.time.microseconds,
            reject.device,
            reject.characteristic.cut(toBytes: LifecycleEvent.longestText),
            isLong ? Array(reject.payload.prefix(Self.longestPayload)) : reject.payload,
            reject.reason.cut(toBytes: LifecycleEvent.longestText)
        )
    }

    func insert(_ event: LifecycleEvent, seq: Int64) throws(StoreFault) {
        try insertEvent.run(binding: seq, event.time.microseconds, event.device, event.kind, event.detail)
    }
}
