public import GattherdModel

// The clocks of the gateway and of the device.
extension RecordTracker {
    /// The variation of times by a device that is told the time, in seconds.
    private static let toldTolerance: Int64 = 10
    /// The largest difference of such times between two downloads, in microseconds.
    private static let toldVariation: UInt64 = 2_000_000

    /// Follows steps of the gateway's clock, which is `base` plus the time since the gateway's start.
    ///
    /// Times from before a step are moved by the step, whether it made the clock right or wrong. Only then can they be
    /// compared with those after it. Times of an earlier boot stay as they are.
    public mutating func setBase(_ base: Int64) {
        let step = base &- self.base
        guard self.base == 0 || step.magnitude >= UInt64(Self.resolution) else { return }
        if self.base != 0 { start = start &+ step }
        self.base = base
        update { $0.move(by: base &- $0.base, to: base) }
        clock.update { comparison in
            guard comparison.base != 0 else { return }
            comparison.move(by: base &- comparison.base)
            comparison.base = base
        }
    }

    /// Converts all times to those of an earlier boot, whose clock the history has corrected.
    mutating func leaveBoot(correction: Int64) {
        update { $0.move(by: correction, to: 0) }
        clock.update { comparison in
            guard comparison.base != 0 else { return }
            comparison.move(by: correction)
            comparison.base = 0
        }
    }

    private mutating func update(_ change: (inout Mark) -> Void) {
        for mark in [\Self.done, \.top, \.topAtStart, \.before] {
            guard var moved = self[keyPath: mark] else { continue }
            change(&moved)
            self[keyPath: mark] = moved
        }
        progress.update(change)
    }

    /// Dates a record with the number.
    mutating func date(_ record: ReceivedRecord, _ number: Int64?, at now: Int64) -> DeviceClock.Dated {
        let known = [progress.last, done].compactMap { $0 }
        let earlier = known.first { $0.receipt == nil && $0.number < number ?? .max }
        // Once its numbers have restarted, the device makes only records that are later than those before.
        let last = done == nil && before?.receipt == nil ? before : nil
        return clock.date(record.reading, after: (earlier ?? last)?.time, at: now)
    }

    /// Dates a record that restarts the numbers, if its time is uncertain: it is later than those before.
    ///
    /// Its time then tells whether the record with the highest number belongs to the new series, too.
    mutating func redate(
        _ mark: inout RecordMark,
        _ dated: inout DeviceClock.Dated,
        _ record: ReceivedRecord,
        after earlier: RecordMark?,
        at now: Int64
    ) {
        guard !dated.isComparable else { return }
        let earliest = earlier?.receipt == nil ? earlier?.time : nil
        dated = clock.date(record.reading, after: earliest, at: now)
        (mark.time, mark.receipt) = (dated.time, dated.isComparable ? nil : now)
    }

    /// Dates a live record that seems to be older than one with a lower number.
    ///
    /// The device's clock was set back on this link, on which the clocks were compared before.
    func redateLive(_ mark: inout RecordMark, _ dated: inout DeviceClock.Dated, at now: Int64) {
        guard dated.isComparable, dated.doubt == nil, let top, mark.number > top.number,
            mark.time < top.time - 2 * Self.resolution
        else { return }
        dated = DeviceClock.Dated(time: now, doubt: "the record before it is later", isComparable: false)
        (mark.time, mark.receipt) = (now, now)
    }

    /// True if the record was certainly made after the newest stored one.
    func isMadeAfter(_ done: RecordMark, _ mark: RecordMark, _ dated: DeviceClock.Dated) -> Bool {
        dated.isComparable && dated.doubt == nil && mark.time > done.time + Self.resolution
    }

    /// The time in seconds by the device's clock from which records are requested; `nil` for all.
    ///
    /// A device that is told the time gives a record another time with each download, by a second or two. A RuuviTag
    /// also leaves out the first record from the requested time on, which must be the newest stored one.
    var requestTime: Int64? {
        guard let mark = resumable else { return nil }
        if isTold { return mark.time / 1_000_000 - (isDense ? 0 : Self.toldTolerance) }
        let reading = hasReadings && mark.receipt == nil ? mark.digest : nil
        // The clock may have been set back since, so that later records have earlier times.
        let lowest = hasReadings ? clock.lowestReading(at: mark.time) : nil
        return ([reading, lowest].compactMap { $0 }.min() ?? mark.time) / 1_000_000
    }

    /// True if both are the same record.
    func isSame(_ mark: RecordMark, as known: RecordMark) -> Bool {
        guard mark.number == known.number else { return false }
        if mark.digest == known.digest { return true }
        guard isTold, mark.receipt == nil, known.receipt == nil else { return false }
        return (mark.time &- known.time).magnitude <= UInt64(Self.toldTolerance) * 1_000_000
    }

    /// Finds the number of a record in an earlier download.
    ///
    /// A device that is told the time gives a record another time with each download. The number varies too if it is
    /// made of the time: `seconds * n + place`, where `n` is the number of records that can have the same time.
    ///
    /// - Parameters:
    ///   - mark: The record's number and time.
    ///   - reading: The record's time by the device's clock, in microseconds; `nil` without one.
    /// - Returns: The number; `nil` unless a known record has about the same time.
    func earlierNumber(of mark: RecordMark, _ reading: Int64?) -> Int64? {
        guard isTold, !isDense, mark.receipt == nil, let seconds = reading.map({ $0 / Self.resolution }), seconds > 0
        else { return nil }
        let records = mark.number / seconds
        guard records > 0, mark.number / records == seconds else { return nil }
        let known = [topAtStart, done].compactMap { $0 }.first { other in
            other.receipt == nil && (other.time &- mark.time).magnitude <= Self.toldVariation
        }
        return known.map { $0.number / records * records + mark.number % records }
    }

    /// Records that the device's clock was set to `now`, which dates its records from now on.
    public mutating func tell(_ now: Timestamp) {
        (clock, isTold) = (DeviceClock(), true)
        compare(device: now.microseconds, gateway: now)
    }

    /// Records a comparison of the device's clock with the gateway's.
    public mutating func compare(device: Int64, gateway: Timestamp) {
        guard device.magnitude <= DeviceClock.plausible.upperBound.magnitude else { return }
        if clock.compare(device: device, gateway: gateway.microseconds, base: base) { add(.clockSet) }
    }
}
