import GattherdModel

/// The times of a table's rows that retention may have deleted.
///
/// Rows of a wrong clock lie apart from all others. Their deletion must not mark current rows as deleted.
struct PurgedTimes: Equatable {
    /// The maximum distance into the future of a row from a correct clock, in microseconds.
    private static let tolerance = Resolution.hours.length

    /// The instant before which rows may have been deleted.
    private(set) var past: Int64
    /// A later range in which rows may have been deleted too.
    private(set) var ahead: Range<Int64>?

    init(past: Int64 = .min, ahead: Range<Int64>? = nil) {
        self.past = past
        add(ahead)
    }

    /// True if a row at the instant may have been deleted.
    func contains(_ ts: Int64) -> Bool {
        ts < past || ahead?.contains(ts) == true
    }

    /// True if a row in `times` may have been deleted.
    func overlaps(_ times: Range<Int64>) -> Bool {
        times.lowerBound < past || ahead?.overlaps(times) == true
    }

    /// True if a row in the span of `resolution` that begins at `start` may have been deleted.
    func overlaps(_ resolution: Resolution, at start: Int64) -> Bool {
        overlaps(start..<max(start, start.addingReportingOverflow(resolution.length).partialValue))
    }

    /// Returns the end of the times before `end` in which rows may have been deleted.
    func reach(before end: Int64) -> Int64 {
        guard let ahead, ahead.lowerBound < end else { return past }
        return max(past, ahead.upperBound)
    }

    /// Adds the times from `start` through `last`, whose rows were deleted.
    ///
    /// - Parameters:
    ///   - start: The first instant that was checked.
    ///   - last: The instant of the last row.
    ///   - latest: The latest possible time now.
    ///   - isPending: True if the clock that stamped the rows may be wrong.
    mutating func add(from start: Int64, through last: Int64, latest: Int64, isPending: Bool) {
        let end = last.addingReportingOverflow(1).partialValue
        guard end > past else { return }
        if isPending {
            add(max(start, past)..<end)
        } else if last > latest.addingReportingOverflow(Self.tolerance).partialValue {
            if start < latest { past = max(past, latest) }
            add(max(start, past)..<end)
        } else {
            past = end
            normalise()
        }
    }

    /// Ends the past at `now`, a trusted time, if a clock that was trusted wrongly moved it into the future.
    ///
    /// Rows from then on count as complete. Only later rows of the wrong clock may be missing.
    mutating func limit(to now: Int64) {
        guard past > now.addingReportingOverflow(Self.tolerance).partialValue else { return }
        past = now
    }

    /// Moves the times that lie within `times` by `shift`, as their rows were moved.
    mutating func move(_ times: Range<Int64>, by shift: Int64) {
        if times.contains(past) { past = past &+ shift }
        guard let moved = ahead, times.overlaps(moved) else { return }
        ahead = nil
        let part = moved.clamped(to: times)
        let (start, end) = (part.lowerBound &+ shift, part.upperBound &+ shift)
        if start < end { add(start..<end) }
    }

    /// Adds a later range.
    ///
    /// If it does not touch the existing one, the earlier of the two extends the past.
    private mutating func add(_ times: Range<Int64>?) {
        guard let times, !times.isEmpty else { return }
        guard let other = ahead else {
            ahead = times
            return normalise()
        }
        if times.lowerBound <= other.upperBound && other.lowerBound <= times.upperBound {
            ahead = min(times.lowerBound, other.lowerBound)..<max(times.upperBound, other.upperBound)
        } else {
            past = max(past, min(times.upperBound, other.upperBound))
            ahead = times.lowerBound < other.lowerBound ? other : times
        }
        normalise()
    }

    private mutating func normalise() {
        guard let ahead else { return }
        if ahead.lowerBound <= past {
            past = max(past, ahead.upperBound)
            self.ahead = nil
        }
    }
}

extension StateTable {
    /// The keys in the file of one table's times.
    struct PurgedKeys {
        let past: Key
        let aheadStart: Key
        let aheadEnd: Key

        static let samples = PurgedKeys(past: .samplesGone, aheadStart: .samplesGoneFrom, aheadEnd: .samplesGoneTo)
        static let minutes = PurgedKeys(past: .minutesGone, aheadStart: .minutesGoneFrom, aheadEnd: .minutesGoneTo)
        static let hours = PurgedKeys(past: .hoursGone, aheadStart: .hoursGoneFrom, aheadEnd: .hoursGoneTo)
        static let all = [samples, minutes, hours]
    }

    /// Returns the times in which rows of a table may have been deleted.
    func purged(_ keys: PurgedKeys) throws(StoreFault) -> PurgedTimes {
        let past = try optionalValue(of: keys.past) ?? .min
        let (start, end) = (try value(of: keys.aheadStart), try value(of: keys.aheadEnd))
        return PurgedTimes(past: past, ahead: start < end ? start..<end : nil)
    }

    func set(_ keys: PurgedKeys, to times: PurgedTimes) throws(StoreFault) {
        if times.past != .min { try set(keys.past, to: times.past) }
        try set(keys.aheadStart, to: times.ahead?.lowerBound ?? 0)
        try set(keys.aheadEnd, to: times.ahead?.upperBound ?? 0)
    }
}
