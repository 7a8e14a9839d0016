import GattherdModel

/// A stretch of rows whose times are off by the same, and by how much is not known yet.
struct PendingClockSpan: Equatable {
    /// The times of its rows, as the clock had them.
    var times: Range<Int64>
    /// What that clock would say now.
    var now: Int64
    /// Its readings have higher numbers.
    var seq: Int64
}

/// Says by which time the rows of which times are too old.
///
/// Rows in a pending stretch are as old as the clock that stamped them would say; all others are as old as is proven,
/// or, slowly, as the wall clock claims.
struct AgePlan: Equatable {
    struct Part: Equatable {
        /// The times of the rows.
        var times: Range<Int64>
        /// The time now, by the clock that counts for them.
        var now: Int64
        /// Rows go slowly.
        var isLimited = false
        /// The rows are of pending stretches.
        var isPending = false
    }

    private(set) var parts: [Part] = []
    /// True when there are rows that go slowly.
    private(set) var isLimited = false
    /// The time now for rows in no pending stretch.
    let proven: Int64
    /// The latest time that it may be.
    let latest: Int64
    /// Readings with higher numbers may be in a pending stretch, by whose clock it is ``pendingNow``.
    let pendingSeq: Int64
    let pendingNow: Int64

    /// - Parameters:
    ///   - proven: The time that is proven.
    ///   - latest: The latest time that it may be.
    ///   - claimed: The later time that the wall clock claims, if it is believed.
    ///   - stretches: Those that are pending.
    init(proven: Int64, latest: Int64, claimed: Int64? = nil, _ stretches: [PendingClockSpan] = []) {
        let stretches = Self.merged(stretches)
        self.proven = proven
        self.latest = latest
        pendingSeq = stretches.map(\.seq).min() ?? .max
        pendingNow = stretches.map(\.now).min() ?? .max
        var base: [Range<Int64>] = []
        var end = Int64.min
        for stretch in stretches {
            if end < stretch.times.lowerBound { base.append(end..<stretch.times.lowerBound) }
            end = stretch.times.upperBound
        }
        base.append(end..<Int64.max)
        parts =
            base.map { Part(times: $0, now: proven) }
            + stretches.map { Part(times: $0.times, now: $0.now, isPending: true) }
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

    /// Those that overlap are as one, and as young as the youngest of them.
    private static func merged(_ stretches: [PendingClockSpan]) -> [PendingClockSpan] {
        var merged: [PendingClockSpan] = []
        for stretch in stretches.sorted(by: { $0.times.lowerBound < $1.times.lowerBound }) {
            guard let last = merged.last, stretch.times.lowerBound <= last.times.upperBound else {
                merged.append(stretch)
                continue
            }
            merged[merged.count - 1] = PendingClockSpan(
                times: last.times.lowerBound..<max(last.times.upperBound, stretch.times.upperBound),
                now: min(last.now, stretch.now),
                seq: min(last.seq, stretch.seq)
            )
        }
        return merged
    }
}
