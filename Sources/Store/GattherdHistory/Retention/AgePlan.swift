import GattherdModel

/// A span of rows whose times are off by the same, and by how much is not known yet.
struct PendingClockSpan: Equatable {
    /// The times of its rows, as the clock had them.
    var times: Range<Int64>
    /// The time now by the span's clock.
    var now: Int64
    /// Its readings have higher numbers.
    var seq: Int64
}

/// Assigns each time range the clock by which its rows age.
///
/// Rows in a pending span are as old as the clock that stamped them would say; all others are as old as is proven,
/// or, slowly, as the wall clock claims.
struct AgePlan: Equatable {
    struct Part: Equatable {
        /// The times of the rows.
        var times: Range<Int64>
        /// The time now, by the clock that counts for them.
        var now: Int64
        /// Rows go slowly.
        var isLimited = false
        /// The rows are of pending spans.
        var isPending = false
    }

    private(set) var parts: [Part] = []
    /// True when there are rows that go slowly.
    private(set) var isLimited = false
    /// The time now for rows in no pending span.
    let proven: Int64
    /// The latest time that it may be.
    let latest: Int64
    /// Readings with higher numbers may be in a pending span, by whose clock it is ``pendingNow``.
    let pendingSeq: Int64
    let pendingNow: Int64

    /// - Parameters:
    ///   - proven: The time that is proven.
    ///   - latest: The latest time that it may be.
    ///   - claimed: The later time that the wall clock claims, if it is believed.
    ///   - spans: Those that are pending.
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

    /// The parts that do not go slowly: each row is in one of them.
    var regions: [Part] { parts.filter { !$0.isLimited } }

    /// True when the same rows count by the same clocks.
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
