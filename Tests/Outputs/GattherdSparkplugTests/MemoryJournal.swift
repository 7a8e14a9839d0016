import GattherdGATT
import GattherdModel
import GattherdSync

/// A journal in memory, with one cursor.
///
/// Every other call of ``recent(after:limit:)`` finds nothing in memory.
final class MemoryJournal: JournalConsumer {
    private struct State: Sendable {
        var requests = 0
        var readings: [JournalReading] = []
        var cursor: Int64 = 0
    }

    private let state = Locked(State())
    private let head = LatestValue<Int64>(0)
    let cursor = LatestValue<Int64>(0)

    /// Commits a reading, numbered from 1.
    func commit(
        _ stream: StreamDefinition,
        _ values: SampleValue...,
        at second: Int64,
        source: ReadingSource = .notify
    ) {
        let last = state.withLock { state in
            let seq = Int64(state.readings.count + 1)
            state.readings.append(.of(stream, values, seq: seq, at: second, source: source))
            return seq
        }
        head.set(last)
    }

    func heads() -> AsyncStream<Int64> { head.watch() }

    func entries(after seq: Int64, limit: Int) async throws(StoreFault) -> JournalBatch { batch(after: seq, limit) }

    func recent(after seq: Int64, limit: Int) -> JournalBatch? {
        let isInMemory = state.withLock { state in
            state.requests += 1
            return state.requests.isMultiple(of: 2)
        }
        return isInMemory ? batch(after: seq, limit) : nil
    }

    private func batch(after seq: Int64, _ limit: Int) -> JournalBatch {
        state.withLock { state in
            let readings = Array(state.readings.dropFirst(Int(seq)).prefix(limit))
            return JournalBatch(readings.map { .reading($0) }, through: readings.last?.seq ?? seq)
        }
    }

    func acknowledged() async throws(StoreFault) -> Int64 { state.withLock { $0.cursor } }

    func acknowledge(through seq: Int64) async throws(StoreFault) {
        state.withLock { $0.cursor = seq }
        cursor.set(seq)
    }

    func epoch() async throws(StoreFault) -> JournalEpoch { throw StoreFault("this journal has no epoch") }

    func rewind(to seq: Int64) async throws(StoreFault) { throw StoreFault("this journal cannot go back") }

    /// Waits until the cursor is at `seq`.
    func waitForCursor(_ seq: Int64) async {
        for await cursor in cursor.watch() where cursor >= seq { return }
    }
}

extension JournalReading {
    /// A reading with one sample for each metric of the stream, in order.
    static func of(
        _ stream: StreamDefinition,
        _ values: [SampleValue],
        seq: Int64,
        at second: Int64,
        source: ReadingSource = .notify
    ) -> JournalReading {
        let samples = values.enumerated().map { index, value in
            Sample(metric: min(index, stream.metrics.count - 1), value: value)
        }
        return JournalReading(
            seq: seq,
            stream: stream,
            time: Timestamp(microseconds: second * 1_000_000),
            source: source,
            samples: samples[...]
        )
    }
}

/// The devices of the tests: a strap with a gauge, a counter, a state and intervals; a lamp with controls.
enum Devices {
    static let heartRate = StreamDefinition(
        device: "strap",
        profile: "heart_rate",
        stream: "heart_rate",
        metrics: [
            MetricDescriptor(name: "rate", unit: "bpm"),
            MetricDescriptor(name: "energy", unit: "kJ", kind: .counter),
        ]
    )
    static let contact = StreamDefinition(
        device: "strap",
        profile: "heart_rate",
        stream: "contact",
        metrics: [MetricDescriptor(name: "state", kind: .state)]
    )
    static let intervals = StreamDefinition(
        device: "strap",
        profile: "heart_rate",
        stream: "intervals",
        metrics: [MetricDescriptor(name: "rr", unit: "s", isRepeated: true)]
    )
    static let brightness = StreamDefinition(
        device: "lamp",
        profile: "light",
        stream: "light",
        metrics: [MetricDescriptor(name: "level", unit: "%")]
    )

    static let strap = DeviceDescription(
        device: "strap",
        address: "C0:FF:EE:00:00:01",
        streams: [heartRate, contact, intervals].map { .init(name: $0.stream, metrics: $0.metrics) }
    )

    static let lamp = DeviceDescription(
        device: "lamp",
        address: "C0:FF:EE:00:00:02",
        streams: [.init(name: "light", metrics: brightness.metrics)],
        controls: [
            ControlDescriptor(name: "level", kind: .integer(-10...100), characteristic: 0x2A56, unit: "%"),
            ControlDescriptor(name: "scene", kind: .choice(["day", "night"]), characteristic: 0x2A57),
            ControlDescriptor(name: "flash", kind: .trigger, characteristic: 0x2A58),
        ]
    )

    static func link(_ device: String, _ state: LinkState) -> LinkStatus {
        LinkStatus(device: device, state: state, since: Timestamp(microseconds: 0))
    }
}
