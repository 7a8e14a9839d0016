import GattherdModel
import GattherdSync

/// A journal in memory.
///
/// Every other call of ``recent(after:limit:)`` finds nothing in memory.
final class TestLog: ReadingJournal {
    private struct State: Sendable {
        var requests = 0
        var readings: [JournalReading] = []
        var cursor: Int64 = 0
    }

    private let state = Locked(State())
    private let head = LatestValue<Int64>(0)
    let cursor = LatestValue<Int64>(0)

    /// Commits `count` readings of `device`; their payloads are their numbers.
    func commit(_ count: Int, device: String = "strap", stream: String = "heart_rate") {
        let last = state.withLock { state in
            for _ in 0..<count {
                let seq = Int64(state.readings.count + 1)
                let payload = Array("{\"seq\":\(seq)}".utf8)
                state.readings.append(JournalReading(seq: seq, device: device, stream: stream, payload: payload))
            }
            return Int64(state.readings.count)
        }
        head.set(last)
    }

    /// Commits a reading with these metrics, a second after the one before.
    func commit(payload metrics: String, device: String, stream: String) {
        let last = state.withLock { state in
            let seq = Int64(state.readings.count + 1)
            let time = Timestamp(microseconds: seq * 1_000_000).rfc3339
            let payload = "{\"seq\":\(seq),\"ts\":\"\(time)\",\"source\":\"notify\",\(metrics)}"
            let reading = JournalReading(seq: seq, device: device, stream: stream, payload: Array(payload.utf8))
            state.readings.append(reading)
            return seq
        }
        head.set(last)
    }

    func heads() -> AsyncStream<Int64> { head.watch() }

    func readings(after seq: Int64, limit: Int) async throws(StoreFault) -> [JournalReading] {
        state.withLock { Array($0.readings.dropFirst(Int(seq)).prefix(limit)) }
    }

    func recent(after seq: Int64, limit: Int) -> [JournalReading]? {
        state.withLock { state in
            state.requests += 1
            guard state.requests.isMultiple(of: 2) else { return nil }
            return Array(state.readings.dropFirst(Int(seq)).prefix(limit))
        }
    }

    func acknowledged() async throws(StoreFault) -> Int64 { state.withLock { $0.cursor } }

    func acknowledge(through seq: Int64) async throws(StoreFault) {
        state.withLock { $0.cursor = seq }
        cursor.set(seq)
    }

    /// Waits until the cursor is at `seq`.
    func waitForCursor(_ seq: Int64) async {
        for await cursor in cursor.watch() where cursor >= seq { return }
    }
}
