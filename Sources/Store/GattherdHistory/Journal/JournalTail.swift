import GattherdModel
import GattherdSync

/// The readings that were committed last and nobody has asked for yet, so that delivery need not read them back.
///
/// Any thread may read it. Older readings are read from the file.
final class JournalTail: Sendable {
    private struct State: Sendable {
        var readings: [JournalReading] = []
        var octets = 0
        /// Everything that is in the log between these two is here.
        var floor = Int64.max
        var end = Int64.min
        var taken: Int64 = 0
    }

    /// Octets of payloads: a second of thousands of readings.
    private let capacity: Int
    private let state = Locked(State())

    init(capacity: Int = 512 << 10) {
        self.capacity = capacity
    }

    /// The last reading that was handed over.
    var taken: Int64 { state.withLock { $0.taken } }

    /// Adds what was committed, in its order.
    ///
    /// - Parameters:
    ///   - readings: All readings between the two numbers.
    ///   - start: The last `seq` before them; if it is not the end of what is here, that is forgotten.
    ///   - end: Their last `seq`.
    func append(_ readings: [JournalReading], after start: Int64, through end: Int64) {
        let octets = readings.reduce(0) { $0 + $1.payload.count }
        state.withLock { state in
            if state.end != start || state.octets + octets > capacity {
                state.readings.removeAll()
                state.octets = 0
                state.floor = start
            }
            state.end = end
            guard octets <= capacity else { return state.floor = end }
            state.readings += readings
            state.octets += octets
        }
    }

    /// Forgets everything: what comes next may be in the log, or elsewhere.
    func forget() {
        state.withLock { state in
            state = State(taken: state.taken)
        }
    }

    /// Hands over the readings after `seq`, at most `limit`; `nil` when there are none, or not all of them are here.
    func take(after seq: Int64, limit: Int) -> [JournalReading]? {
        state.withLock { state in
            guard seq >= state.floor, seq < state.end else { return nil }
            let start = state.readings.firstIndex { $0.seq > seq } ?? state.readings.endIndex
            let taken = Array(state.readings[start...].prefix(max(0, limit)))
            state.readings.removeFirst(start + taken.count)
            state.octets = state.readings.reduce(0) { $0 + $1.payload.count }
            state.floor = taken.last?.seq ?? seq
            state.taken = max(state.taken, taken.last?.seq ?? 0)
            return taken.isEmpty ? nil : taken
        }
    }
}
