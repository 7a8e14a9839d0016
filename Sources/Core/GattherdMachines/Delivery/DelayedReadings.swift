import GattherdModel

/// The last suppressed reading of each stream, which is published when its interval is over.
///
/// The cursor passes these readings. The resume point does not, so that another run finds them again. Another run
/// repeats all readings after them, so the resume point passes old readings that many others follow.
struct DelayedReadings: Sendable {
    private struct Delayed {
        let reading: JournalReading
        /// The time for which the stream gathers readings, if it does.
        let gathering: Duration?
    }

    private struct Hold {
        let seq: Int64
        /// The number of readings before it.
        let index: Int
        let addedAt: Duration
    }

    private var delayed: [StreamKey: Delayed] = [:]
    /// The delayed readings, and those that are published and not acknowledged, in journal order.
    private var holds: [Hold] = []

    var isEmpty: Bool { delayed.isEmpty && holds.isEmpty }
    /// True if a reading is to be published later.
    var hasReadings: Bool { !delayed.isEmpty }

    /// Adds a reading, which replaces an earlier one of its stream.
    mutating func add(_ reading: JournalReading, gathering: Duration?, index: Int, at now: Duration) {
        supersede(by: reading)
        delayed[StreamKey(reading)] = Delayed(reading: reading, gathering: gathering)
        holds.append(Hold(seq: reading.seq, index: index, addedAt: now))
    }

    /// Removes the delayed reading of a stream, because a newer one is published.
    mutating func supersede(by reading: JournalReading) {
        guard !delayed.isEmpty, let old = delayed.removeValue(forKey: StreamKey(reading)) else { return }
        endHold(old.reading.seq)
    }

    /// Removes a delayed reading that is not published.
    mutating func drop(_ seq: Int64) {
        if remove(seq) != nil { endHold(seq) }
    }

    /// Removes the delayed readings of a device.
    mutating func remove(device: String) {
        for (stream, old) in delayed where stream.device == device {
            delayed[stream] = nil
            endHold(old.reading.seq)
        }
    }

    /// Removes and returns a reading that is to be published; it holds the resume point until ``endHold(_:)``.
    mutating func remove(_ seq: Int64) -> (reading: JournalReading, gathering: Duration?)? {
        guard let found = delayed.first(where: { $0.value.reading.seq == seq }) else { return nil }
        delayed[found.key] = nil
        return (found.value.reading, found.value.gathering)
    }

    /// Records that a reading is acknowledged, or will not be published.
    mutating func endHold(_ seq: Int64) {
        if let index = holds.firstIndex(where: { $0.seq == seq }) { holds.remove(at: index) }
    }

    /// The first reading that the resume point must not pass.
    var held: Int64? { holds.first?.seq }

    /// Lets the resume point pass readings that were added up to `time` and that more than `limit` others follow.
    ///
    /// - Parameters:
    ///   - time: The end of the time.
    ///   - end: The number of readings up to now.
    ///   - limit: The number of readings that another run may repeat at any time.
    mutating func limitHolds(before time: Duration, end: Int, limit: Int) {
        holds.removeFirst(holds.prefix { $0.addedAt <= time && end - $0.index > limit }.count)
    }
}
