import GattherdModel

/// A clock span of rows whose times have the same, still unknown error; all times are in microseconds.
struct PendingClockSpan: Equatable {
    /// The times of the rows, by the span's clock.
    var times: Range<Int64>
    /// The time now by the span's clock.
    var now: Int64
    /// The number before the span's first reading.
    var seq: Int64
}

/// Assigns each time range the clock by which its rows age.
///
/// Rows in a pending span age by the clock that stamped them. All others age by the proven time or, with slow deletion,
/// by the wall clock.
struct AgePlan: Equatable {
    struct Part: Equatable {
        /// The times of the rows.
        var times: Range<Int64>
        /// The current time by the clock of these rows.
        var now: Int64
        /// True if these rows are deleted slowly.
        var isLimited = false
        /// True if the rows are in pending spans.
        var isPending = false
    }

    private(set) var parts: [Part] = []
    /// True if some rows are deleted slowly.
    private(set) var isLimited = false
    /// The time now for rows in no pending span, in microseconds since 1970.
    let proven: Int64
    /// The latest possible time now, in microseconds since 1970.
    let latest: Int64
    /// The number after which readings may be in a pending span.
    let pendingSeq: Int64
    /// The earliest current time by the clocks of the pending spans.
    let pendingNow: Int64

    /// - Parameters:
    ///   - proven: The proven time.
    ///   - latest: The latest possible time now.
    ///   - claimed: The later time of the wall clock, if it is trusted.
    ///   - spans: The pending spans.
    init(proven: Int64, latest: Int64, claimed: Int64? = nil, _ spans: [PendingClockSpan] = []) {
        let spans = Self.merged(spans)
        self.proven = proven
        self.latest = latest
        pendingSeq = spans.map(\.seq).min() ?? .max
        pendingNow = spans.map(\.now).min() ?? .max
        var base: [Range<Int64>] = []
        var end = Int64.min
        for span in spans {
            if end < span.times.lowerBound { base.append(end..<span.times.lowerBound) }
            end = span.times.upperBound
        }
        base.append(end..<Int64.max)
        parts =
            base.map { Part(times: $0, now: proven) }
            + spans.map { Part(times: $0.times, now: $0.now, isPending: true) }
        parts.sort { $0.times.lowerBound < $1.times.lowerBound }
        guard let claimed, claimed > proven else { return }
        isLimited = true
        parts += base.map { Part(times: $0, now: claimed, isLimited: true) }
    }

    /// The parts without slow deletion; each row is in one of them.
    var regions: [Part] { parts.filter { !$0.isLimited } }

    /// True if the same rows age by the same clocks.
    func hasShape(of other: AgePlan) -> Bool {
        isLimited == other.isLimited && parts.map(\.times.lowerBound) == other.parts.map(\.times.lowerBound)
    }

    /// Merges overlapping spans; a merged span is as young as the youngest.
    private static func merged(_ spans: [PendingClockSpan]) -> [PendingClockSpan] {
        var merged: [PendingClockSpan] = []
        for span in spans.sorted(by: { $0.times.lowerBound < $1.times.lowerBound }) {
            guard let last = merged.last, span.times.lowerBound <= last.times.upperBound else {
                merged.append(span)
                continue
            }
            merged[merged.count - 1] = PendingClockSpan(
                times: last.times.lowerBound..<max(last.times.upperBound, span.times.upperBound),
                now: min(last.now, span.now),
                seq: min(last.seq, span.seq)
            )
        }
        return merged
    }
}
