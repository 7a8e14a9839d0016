import GattherdModel
import GattherdSync

/// A journal in memory.
///
/// Every other call of ``recent(after:limit:)`` finds nothing in memory.
final class TestLog: JournalConsumer {
    private struct State: Sendable {
        var requests = 0
        var readings: [JournalReading] = []
        var cursor: Int64 = 0
        var lost: Int64 = 0
    }

    private let state = Locked(State())
    /// The time before the first reading.
    private let start: Timestamp
    private let head = LatestValue<Int64>(0)
    let cursor = LatestValue<Int64>(0)

    init(startingAt start: Timestamp = Timestamp(microseconds: 0)) {
        self.start = start
    }

    /// Commits `count` readings of `device`, without metrics.
    func commit(_ count: Int, device: String = "strap", stream: String = "heart_rate") {
        let definition = StreamDefinition(device: device, profile: "p", stream: stream, metrics: [])
        for _ in 0..<count { append(definition, []) }
        publishHead()
    }

    /// Commits a reading with these members of a JSON object as its metrics, a second after the one before.
    func commit(payload metrics: String, device: String, stream: String, source: ReadingSource = .notify) {
        guard case .object(let members)? = try? JSONReader.value(of: Array("{\(metrics)}".utf8)) else { return }
        let descriptors = members.map { member in
            if case .array = member.value { return MetricDescriptor(name: member.name, isRepeated: true) }
            return MetricDescriptor(name: member.name)
        }
        let samples = members.enumerated().flatMap { index, member in
            member.value.samples.map { Sample(metric: index, value: $0) }
        }
        append(StreamDefinition(device: device, profile: "p", stream: stream, metrics: descriptors), samples, source)
        publishHead()
    }

    private func append(_ stream: StreamDefinition, _ samples: [Sample], _ source: ReadingSource = .notify) {
        state.withLock { state in
            let seq = Int64(state.readings.count + 1)
            let time = start.advanced(by: .seconds(seq))
            state.readings.append(
                JournalReading(seq: seq, stream: stream, time: time, source: source, samples: samples[...])
            )
        }
    }

    private func publishHead() {
        head.set(state.withLock { Int64($0.readings.count) })
    }

    private func batch(after seq: Int64, limit: Int) -> JournalBatch {
        state.withLock { state in
            if seq < state.lost {
                return JournalBatch(missing: JournalGap(after: seq, through: state.lost, reason: "deleted"))
            }
            let readings = state.readings.dropFirst(Int(seq)).prefix(limit)
            let end = readings.count < limit ? Int64(state.readings.count) : readings.last?.seq ?? seq
            return JournalBatch(readings.map { .reading($0) }, through: end)
        }
    }

    /// Loses all readings up to this number.
    func lose(through seq: Int64) {
        state.withLock { $0.lost = seq }
    }

    func heads() -> AsyncStream<Int64> { head.watch() }

    func entries(after seq: Int64, limit: Int) async throws(StoreFault) -> JournalBatch {
        batch(after: seq, limit: limit)
    }

    func recent(after seq: Int64, limit: Int) -> JournalBatch? {
        let isInMemory = state.withLock { state in
            state.requests += 1
            return state.requests.isMultiple(of: 2)
        }
        return isInMemory ? batch(after: seq, limit: limit) : nil
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

extension JSONValue {
    /// The samples of a metric with this value.
    fileprivate var samples: [SampleValue] {
        switch self {
        case .null: [.null]
        case .boolean(let flag): [.boolean(flag)]
        case .integer(let number): [.integer(number)]
        case .real(let number): [.real(number)]
        case .string(let text): [.text(text)]
        case .array(let elements): elements.flatMap(\.samples)
        case .object: []
        }
    }
}
