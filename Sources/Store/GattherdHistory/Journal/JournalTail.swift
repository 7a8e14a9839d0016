import GattherdModel
import GattherdSync

/// The newest committed readings, held in memory so that delivery need not read them back.
///
/// Any thread may read the tail. Older readings are read from the file.
final class JournalTail: Sendable {
    private struct State: Sendable {
        var readings: [JournalReading] = []
        var octets = 0
        /// The tail has all of the journal's readings between these two numbers.
        var floor = Int64.max
        var end = Int64.min
        var taken: Int64 = 0
    }

    /// The maximum size of the payloads in bytes: thousands of readings, for a second.
    private let capacity: Int
    private let state = Locked(State())

    init(capacity: Int = 512 << 10) {
        self.capacity = capacity
    }

    /// The last reading that was handed over.
    var taken: Int64 { state.withLock { $0.taken } }

    /// Adds committed readings in order.
    ///
    /// - Parameters:
    ///   - readings: All readings between the two numbers.
    ///   - start: The last `seq` before the readings; if it is not the tail's end, the tail is emptied first.
    ///   - end: The last `seq` of the readings.
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

    /// Empties the tail, because the next readings may be in the journal or elsewhere.
    func forget() {
        state.withLock { state in
            state = State(taken: state.taken)
        }
    }

    /// Returns the readings after `seq`, at most `limit`; `nil` if there are none, or some are missing in the tail.
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
