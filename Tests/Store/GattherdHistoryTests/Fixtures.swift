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

extension ReadingHistory {
    /// A history whose clock stands at ``Fixture/epoch``.
    static func open(path: String, keepsJournal: Bool, log: Log) async throws(StoreFault) -> ReadingHistory {
        try await open(
            HistoryOptions(path: path, keepsJournal: keepsJournal, clock: GatewayClock(now: { Fixture.epoch })),
            log: log
        )
    }

    static func open(_ folder: TemporaryFolder, keepsJournal: Bool = true) async throws(StoreFault) -> ReadingHistory {
        try await open(path: folder.database, keepsJournal: keepsJournal, log: .silent)
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

/// Random numbers that are the same each time.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func next(below limit: UInt64) -> Int {
        Int(next() % limit)
    }
}
