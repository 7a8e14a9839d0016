/// The offset of a device's clock from the gateway's, for the times of stored records.
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
        /// The base of that time; see ``RecordTracker/setBase(_:)``.
        var base: Int64 = 0

        /// Moves the gateway's clock.
        mutating func move(by step: Int64) {
            (offset, time) = (offset &- step, time &+ step)
        }

        /// True if the device's clock was set since an earlier comparison: it is farther off than clocks drift.
        func isSet(since earlier: Comparison) -> Bool {
            let drift = DeviceClock.tolerance + max(0, time &- earlier.time) / 2000
            return (offset &- earlier.offset).magnitude > drift.magnitude
        }
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

    /// The maximum number of settings of the clock that are kept.
    private static let mostSettings = 8

    /// The last comparison before each setting of the clock since the last complete download.
    private(set) var earlier: [Comparison] = []
    /// The comparisons since the last setting of the clock: one of an earlier connection, and the newest.
    ///
    /// While ``earlier`` has a setting, the former is the first comparison since the last one.
    private(set) var comparisons: [Comparison] = []
    /// The index of the setting, in ``earlier`` or after them, that records of the current download have reached.
    private var reached = 0
    /// The last reading that one of the settings explains.
    private var lastReading: Int64?

    /// True if the clock was compared with the gateway's.
    var isReadable: Bool { !comparisons.isEmpty }

    init() {}

    /// Restores the clock.
    init(earlier: [Comparison], _ comparisons: [Comparison]) {
        (self.earlier, self.comparisons) = (earlier.suffix(Self.mostSettings), comparisons)
    }

    /// Adds a comparison; returns true if the device's clock was set since the last one.
    mutating func compare(device: Int64, gateway: Int64, base: Int64 = 0) -> Bool {
        let new = Comparison(offset: device - gateway, time: gateway, base: base)
        (reached, lastReading) = (0, nil)
        guard let last = comparisons.last else {
            comparisons = [new]
            return false
        }
        guard new.isSet(since: last) else {
            comparisons = [earlier.isEmpty ? last : comparisons.first ?? last, new]
            return false
        }
        earlier = (earlier + [last]).suffix(Self.mostSettings)
        comparisons = [new]
        return true
    }

    /// Changes the comparisons after a step of the gateway's clock.
    ///
    /// Removes settings that were only errors of the gateway's clock. The comparisons around one may be days apart, so
    /// the drift that explains a difference of two comparisons does not count here.
    mutating func update(_ change: (inout Comparison) -> Void) {
        for index in earlier.indices { change(&earlier[index]) }
        for index in comparisons.indices { change(&comparisons[index]) }
        while let last = earlier.last, let first = comparisons.first, let newest = comparisons.last,
            (first.offset &- last.offset).magnitude <= Self.tolerance.magnitude
        {
            earlier.removeLast()
            (comparisons, reached, lastReading) = ([last, newest], 0, nil)
        }
    }

    /// Starts a request: its first records may be older than the last ones.
    mutating func beginRequest() {
        (reached, lastReading) = (0, nil)
    }

    /// Ends a download: later records are later than the newest comparison.
    mutating func finishDownload() {
        comparisons = comparisons.suffix(1)
        (earlier, reached, lastReading) = ([], 0, nil)
    }

    /// Returns the lowest possible reading at `time`, by all settings since the last complete download.
    ///
    /// - Parameter time: The gateway's time.
    /// - Returns: The reading; `nil` if the clock cannot be read.
    func lowestReading(at time: Int64) -> Int64? {
        (earlier + comparisons).map(\.offset).min().map { time &+ $0 &- Self.tolerance }
    }

    /// Dates a reading of the device's clock.
    ///
    /// - Parameters:
    ///   - reading: The device's clock when it made the record; `nil` if it had no time.
    ///   - earliest: The time of an earlier record, if one is known.
    ///   - now: The gateway's time.
    /// - Returns: The gateway's time of the reading.
    mutating func date(_ reading: Int64?, after earliest: Int64?, at now: Int64) -> Dated {
        // A clock that counts from elsewhere than 1970 may be negative.
        let magnitude = comparisons.isEmpty ? 0 : Self.plausible.upperBound
        guard let reading, (-magnitude...Self.plausible.upperBound).contains(reading) else {
            return Dated(time: now, doubt: "the record has no time", isComparable: false)
        }
        guard let newest = comparisons.last else { return dateAsUTC(reading, at: now) }
        if !earlier.isEmpty { return dateAcrossSettings(reading, newest, after: earliest, at: now) }
        return bounded(corrected(reading, newest), at: now)
    }

    /// Dates a record by a clock that cannot be read; the clock counts as UTC.
    ///
    /// The time may be later than `now`: only unchanged times tell which of two records is the later one.
    private func dateAsUTC(_ reading: Int64, at now: Int64) -> Dated {
        guard reading <= now + 86_400_000_000 else {
            return Dated(time: now, doubt: "the device's clock is ahead", isComparable: false)
        }
        return Dated(time: reading, doubt: "the device's clock cannot be read", isComparable: true)
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
        let time = reading &- newest.offset
        guard comparisons.count == 2, time < newest.time, newest.time > comparisons[0].time else { return time }
        let older = comparisons[0]
        let share = Double(newest.time - max(time, older.time)) / Double(newest.time - older.time)
        return time &+ Int64(Double(newest.offset - older.offset) * share)
    }

    /// Dates a record near a change of the clock by the setting that gives a possible time.
    private mutating func dateAcrossSettings(
        _ reading: Int64,
        _ newest: Comparison,
        after earliest: Int64?,
        at now: Int64
    ) -> Dated {
        if let lastReading, reading < lastReading - Self.tolerance { reached = min(reached + 1, earlier.count) }
        let all = earlier + [newest]
        let ends = (earlier.dropFirst() + comparisons.prefix(1)).map(\.time)
        let possible = (reached..<all.count).compactMap { index -> (index: Int, time: Int64)? in
            let time = reading &- all[index].offset
            // A setting applies after the last comparison with the setting before it, at most until one with the next.
            let start = max(earliest ?? .min, index > 0 ? all[index - 1].time : .min, Self.plausible.lowerBound)
            let end = index < ends.count ? min(ends[index], now) : now
            return time >= start - Self.tolerance && time <= end + Self.tolerance ? (index, time) : nil
        }
        guard let first = possible.first else {
            return Dated(time: earliest ?? now, doubt: "the device's clock was set", isComparable: false)
        }
        lastReading = reading
        guard possible.count == 1 else {
            return Dated(time: min(first.time, now), doubt: "the device's clock was set", isComparable: false)
        }
        reached = first.index
        return Dated(time: min(first.time, now), isComparable: true)
    }
}
