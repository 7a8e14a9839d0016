/// The clock of a device compared with the gateway's, for the times of stored records.
///
/// All times are microseconds. Records get the gateway's time: its clock minus the record's age by the device's clock.
/// An error of the device's clock therefore does not matter, only a change of it between a record and its download.
struct DeviceClock: Hashable, Sendable {
    /// A comparison of the two clocks.
    struct Comparison: Hashable, Sendable {
        /// The device's clock minus the gateway's.
        var offset: Int64
        /// The gateway's time of the comparison.
        var time: Int64
    }

    /// A time with its quality.
    struct Dated: Hashable {
        var time: Int64
        /// The reason why the time is uncertain; `nil` if it is right.
        var doubt: String?
        /// True if the time can be compared with that of other records.
        var isComparable: Bool
    }

    /// The error of reading a clock with a resolution of a second.
    private static let tolerance: Int64 = 2_000_000
    /// The bounds of plausible times: the years 1970 to 9999.
    static let plausible: ClosedRange<Int64> = 0...253_402_300_799_999_999

    /// The comparison of an earlier connection, and the newest.
    private(set) var comparisons: [Comparison] = []
    /// True if the device's clock was set between the two comparisons.
    private(set) var isSet = false
    /// True if records of the present download are later than the setting of the clock.
    private var isPastSetting = false
    private var lastReading: Int64?

    init() {}

    /// Restores the clock.
    init(_ comparisons: [Comparison], isSet: Bool) {
        self.comparisons = comparisons
        self.isSet = isSet && comparisons.count == 2
    }

    /// Adds a comparison; returns true if the device's clock was set since the last one.
    mutating func compare(device: Int64, gateway: Int64) -> Bool {
        let new = Comparison(offset: device - gateway, time: gateway)
        (isPastSetting, lastReading) = (false, nil)
        guard let last = comparisons.last else {
            comparisons = [new]
            return false
        }
        let drift = Self.tolerance + max(0, new.time - last.time) / 2000
        guard abs(new.offset - last.offset) > drift else {
            comparisons = isSet ? [comparisons[0], new] : [last, new]
            return false
        }
        comparisons = [last, new]
        isSet = true
        return true
    }

    /// Ends a download: later records are later than the newest comparison.
    mutating func finishDownload() {
        comparisons = comparisons.suffix(1)
        (isSet, isPastSetting, lastReading) = (false, false, nil)
    }

    /// Dates a reading of the device's clock.
    ///
    /// - Parameters:
    ///   - reading: The device's clock when it made the record; `nil` if it had no time.
    ///   - earliest: The time of an earlier record, if one is known.
    ///   - now: The gateway's time.
    /// - Returns: The gateway's time of the reading.
    mutating func date(_ reading: Int64?, after earliest: Int64?, at now: Int64) -> Dated {
        guard let reading, Self.plausible.contains(reading) || comparisons.last != nil else {
            return Dated(time: now, doubt: "the record has no time", isComparable: false)
        }
        defer { lastReading = reading }
        guard let newest = comparisons.last else { return face(reading, at: now) }
        if isSet { return dateAcrossSetting(reading, newest, after: earliest, at: now) }
        return bounded(corrected(reading, newest), at: now)
    }

    /// Dates by a clock that cannot be read: it is taken for UTC.
    private func face(_ reading: Int64, at now: Int64) -> Dated {
        guard reading <= now + 86_400_000_000 else {
            return Dated(time: now, doubt: "the device's clock is ahead", isComparable: false)
        }
        return Dated(time: min(reading, now), doubt: "the device's clock cannot be read", isComparable: true)
    }

    private func bounded(_ time: Int64, at now: Int64) -> Dated {
        guard time <= now + Self.tolerance else {
            return Dated(time: now, doubt: "it is later than the device's clock", isComparable: false)
        }
        guard time >= Self.plausible.lowerBound else {
            return Dated(time: now, doubt: "it is before 1970", isComparable: false)
        }
        return Dated(time: min(time, now), isComparable: true)
    }

    /// Spreads the drift of the clock over the time between two comparisons.
    private func corrected(_ reading: Int64, _ newest: Comparison) -> Int64 {
        let time = reading - newest.offset
        guard comparisons.count == 2, time < newest.time, newest.time > comparisons[0].time else { return time }
        let older = comparisons[0]
        let share = Double(newest.time - max(time, older.time)) / Double(newest.time - older.time)
        return time + Int64(Double(newest.offset - older.offset) * share)
    }

    /// Dates a record from before or after the setting of the clock: by the one that gives a possible time.
    private mutating func dateAcrossSetting(
        _ reading: Int64,
        _ newest: Comparison,
        after earliest: Int64?,
        at now: Int64
    ) -> Dated {
        let (old, new) = (reading - comparisons[0].offset, reading - newest.offset)
        let possible = max(earliest ?? .min, Self.plausible.lowerBound) - Self.tolerance...now + Self.tolerance
        if let lastReading, reading < lastReading - Self.tolerance { isPastSetting = true }
        switch (possible.contains(old) && !isPastSetting, possible.contains(new)) {
        case (true, false): return Dated(time: min(old, now), isComparable: true)
        case (false, true):
            isPastSetting = true
            return Dated(time: min(new, now), isComparable: true)
        case (true, true):
            return Dated(time: min(old, now), doubt: "the device's clock was set", isComparable: false)
        case (false, false):
            return Dated(time: max(earliest ?? now, .min), doubt: "the device's clock was set", isComparable: false)
        }
    }
}
