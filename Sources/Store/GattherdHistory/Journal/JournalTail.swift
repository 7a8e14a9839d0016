import GattherdModel
import GattherdSync

/// The newest committed readings, held in memory so that delivery need not read them back.
///
/// Any thread may read the tail. Older readings are read from the file.
final class JournalTail: Sendable {
    private struct State: Sendable {
        var readings: [JournalReading] = []
        var bytes = 0
        /// The tail has all of the journal's readings between these two numbers.
        var floor = Int64.max
        var end = Int64.min
        var handedOver: Int64 = 0
    }

    /// The maximum size of the payloads in bytes: thousands of readings, for a second.
    private let capacity: Int
    private let state = Locked(State())

    init(capacity: Int = 512 << 10) {
        self.capacity = capacity
    }

    /// The last reading that was handed over.
    var handedOver: Int64 { state.withLock { $0.handedOver } }

    /// Adds committed readings in order.
    ///
    /// - Parameters:
    ///   - readings: All readings between the two numbers.
    ///   - start: The last `seq` before the readings; if it is not the tail's end, the tail is emptied first.
    ///   - end: The last `seq` of the readings.
    func append(_ readings: [JournalReading], after start: Int64, through end: Int64) {
        let bytes = readings.reduce(0) { $0 + $1.payload.count }
        state.withLock { state in
            if state.end != start || state.bytes + bytes > capacity {
                state.readings.removeAll()
                state.bytes = 0
                state.floor = start
            }
            state.end = end
            guard bytes <= capacity else { return state.floor = end }
            state.readings += readings
            state.bytes += bytes
        }
    }

    /// Empties the tail, because the next readings may be in the journal or elsewhere.
    func removeAll() {
        state.withLock { state in
            state = State(handedOver: state.handedOver)
        }
    }

    /// Removes and returns the readings after `seq`, at most `limit`.
    ///
    /// Returns `nil` if there are none, or some are missing in the tail.
    func dequeue(after seq: Int64, limit: Int) -> [JournalReading]? {
        state.withLock { state in
            guard seq >= state.floor, seq < state.end else { return nil }
            let start = state.readings.firstIndex { $0.seq > seq } ?? state.readings.endIndex
            let readings = Array(state.readings[start...].prefix(max(0, limit)))
            state.readings.removeFirst(start + readings.count)
            state.bytes = state.readings.reduce(0) { $0 + $1.payload.count }
            state.floor = readings.last?.seq ?? seq
            state.handedOver = max(state.handedOver, readings.last?.seq ?? 0)
            return readings.isEmpty ? nil : readings
        }
    }
}
