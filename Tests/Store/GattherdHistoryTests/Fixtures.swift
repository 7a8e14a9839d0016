import FoundationEssentials
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit

@testable import GattherdHistory

/// Streams as profiles make them.
enum Fixture {
    static let epoch = Timestamp(microseconds: 1_795_231_205_123_456)  // 2026-11-21T03:20:05.123456Z

    static func heartRate(_ device: String = "strap") -> StreamDefinition {
        StreamDefinition(
            device: device,
            profile: "heart-rate",
            stream: "heart_rate",
            metrics: [
                MetricDescriptor(name: "heart_rate", unit: "bpm"),
                MetricDescriptor(name: "sensor_contact", kind: .state),
                MetricDescriptor(name: "rr_interval", unit: "s", isRepeated: true),
            ]
        )
    }

    /// A stream of one metric without a unit.
    static func plain(_ metric: String = "value", device: String = "box") -> StreamDefinition {
        StreamDefinition(
            device: device,
            profile: "test",
            stream: "plain",
            metrics: [MetricDescriptor(name: metric)]
        )
    }

    /// A stream with a battery level, which devices may have in several streams.
    static func battery(_ stream: String, device: String = "strap") -> StreamDefinition {
        StreamDefinition(
            device: device,
            profile: "\(stream)-profile",
            stream: stream,
            metrics: [MetricDescriptor(name: "battery_level", unit: "%")]
        )
    }
}

extension ReadingBatch {
    /// One reading whose samples are `values`, each of a metric.
    mutating func add(
        _ stream: StreamDefinition,
        at time: Timestamp = Fixture.epoch,
        by source: ReadingSource = .notify,
        _ values: (metric: Int, value: SampleValue)...
    ) {
        let start = samples.count
        samples += values.map { Sample(metric: $0.metric, value: $0.value) }
        readings.append(Reading(stream: stream, time: time, source: source, samples: start..<samples.count))
    }

    /// A reading of ``Fixture/plain(_:device:)`` for each value, a microsecond apart.
    static func plain(
        _ values: some Sequence<SampleValue>,
        of stream: StreamDefinition = Fixture.plain(),
        at time: Timestamp = Fixture.epoch
    ) -> ReadingBatch {
        var batch = ReadingBatch()
        var time = time
        for value in values {
            batch.add(stream, at: time, (0, value))
            time = time.advanced(by: .microseconds(1))
        }
        return batch
    }

    static func plain(integers: some Sequence<Int>) -> ReadingBatch {
        plain(integers.map { .integer(Int64($0)) })
    }
}

extension [JournalConsumerOptions] {
    /// One consumer, the journal's reader of most tests.
    static var one: Self { [JournalConsumerOptions(name: "mqtt")] }
}

/// The journal as the only consumer sees it.
extension ReadingHistory {
    nonisolated func heads() -> AsyncStream<Int64> { consumer("mqtt").heads() }

    nonisolated func recent(after seq: Int64, limit: Int) -> [JournalReading]? {
        consumer("mqtt").recent(after: seq, limit: limit)?.readings
    }

    nonisolated func readings(after seq: Int64, limit: Int) async throws(StoreFault) -> [JournalReading] {
        try await consumer("mqtt").entries(after: seq, limit: limit).readings
    }

    nonisolated func acknowledged() async throws(StoreFault) -> Int64 { try await consumer("mqtt").acknowledged() }

    nonisolated func acknowledge(through seq: Int64) async throws(StoreFault) {
        try await consumer("mqtt").acknowledge(through: seq)
    }
}

extension JournalReading {
    /// A reading with one sample, its number.
    static func test(_ seq: Int64) -> JournalReading {
        let sample = Sample(metric: 0, value: .integer(seq))
        let stream = Fixture.plain("value")
        return JournalReading(seq: seq, stream: stream, time: Fixture.epoch, source: .notify, samples: [sample])
    }

    /// True if a sample is not a number, which is stored as unknown.
    var hasNaN: Bool {
        samples.contains { if case .real(let number) = $0.value { !number.isFinite } else { false } }
    }

    /// The reading as it is published.
    var json: String { String(decoding: JSONWriter.bytes { writeJSON(to: &$0) }, as: UTF8.self) }
}

extension HistoryFile {
    func readings(after seq: Int64, limit: Int) throws(StoreFault) -> [JournalReading] {
        try entries(after: seq, limit: limit, for: "mqtt").readings
    }
}

extension Journal {
    /// The cursor of the only consumer.
    var cursor: Int64 { delivered }

    func acknowledge(through seq: Int64) { acknowledge(through: seq, by: "mqtt") }
}

extension ReadingHistory {
    /// A history whose clock stands at ``Fixture/epoch``.
    static func open(
        path: String,
        consumers: [JournalConsumerOptions],
        log: Log
    ) async throws(StoreFault) -> ReadingHistory {
        try await open(
            HistoryOptions(path: path, consumers: consumers, clock: GatewayClock(now: { Fixture.epoch })),
            log: log
        )
    }

    static func open(
        _ folder: TemporaryFolder,
        consumers: [JournalConsumerOptions] = .one
    ) async throws(StoreFault) -> ReadingHistory {
        try await open(path: folder.database, consumers: consumers, log: .silent)
    }
}

extension HistoryFile {
    /// Begins a pass by a clock that is right, and was started at ``Fixture/epoch``.
    func startPass(at now: Timestamp) throws(StoreFault) {
        let uptime = now.microseconds - Fixture.epoch.microseconds
        try startPass(ClockReading(wall: now.microseconds, uptime: uptime, isSynchronised: true))
    }
}

extension TemporaryFolder {
    var database: String { file("gattherd.db") }
    var shell: SQLiteShell { SQLiteShell(database) }

    /// The octets of the WAL's file.
    func sizeOfWAL() throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: database + "-wal")[.size] as? Int
    }
}

/// A log that remembers.
final class LogRecorder: Sendable {
    private let entries = Locked<[LogEntry]>([])

    var log: Log {
        Log(threshold: .debug) { [entries] entry in entries.withLock { $0.append(entry) } }
    }

    var messages: [String] { entries.withLock { $0.map(\.message) } }
}
