import GattherdModel

/// Writes the rows that the views show: samples, rejects and events.
final class RowInserts {
    /// The maximum stored size of a payload in bytes; a characteristic has at most 512.
    private static let longestPayload = 4096

    private let sample: Statement
    private let reject: Statement
    private let event: Statement

    init(_ connection: SQLiteConnection) throws(StoreFault) {
        sample = try Statement(
            "INSERT INTO sample (ts, seq, ix, series, value) VALUES (?1, ?2, ?3, ?4, ?5)",
            on: connection
        )
        reject = try Statement(
            "INSERT INTO reject (ts, device, characteristic, octets, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
            on: connection
        )
        event = try Statement(
            "INSERT INTO event (ts, device, kind, detail) VALUES (?1, ?2, ?3, ?4)",
            on: connection
        )
    }

    /// Sets the reading of the samples that follow.
    func begin(readingAt time: Timestamp, seq: Int64) {
        sample.bind(time.microseconds, at: 1)
        sample.bind(seq, at: 2)
    }

    /// Inserts one sample of the current reading.
    func insert(_ value: SampleValue, of series: Int64, index: Int64) throws(StoreFault) {
        sample.bind(index, at: 3)
        sample.bind(series, at: 4)
        try sample.run(value, at: 5)
    }

    /// Inserts a rejected payload with its reason, both truncated to a row's limits.
    func insert(_ rejected: Reject) throws(StoreFault) {
        reject.bind(
            rejected.time.microseconds,
            rejected.device,
            rejected.characteristic.cut(toBytes: LifecycleEvent.longestText)
        )
        reject.bind(rejected.reason.cut(toBytes: LifecycleEvent.longestText), at: 5)
        try reject.run(blob: rejected.octets.span.extracting(first: Self.longestPayload), at: 4)
    }

    func insert(_ happened: LifecycleEvent) throws(StoreFault) {
        event.bind(happened.time.microseconds, happened.device, happened.kind)
        try event.run(text: happened.detail.utf8Span.span, at: 4)
    }
}
