/// The tables from which a time range is read: whole hours and minutes from their summaries, the rest from
/// samples.
///
/// If finer rows are purged, the spans at both ends are read whole. If a summary is purged but finer rows are kept
/// longer, the finer rows are read.
struct BucketPlan {
    struct Segment: Hashable {
        let resolution: Resolution
        /// Microseconds since 1970.
        let times: Range<Int64>
    }

    /// The coverage of a summary table.
    struct Marks: Hashable {
        /// The first instant that is not summarised yet.
        var covered = Int64.max
        /// The instant before which rows may have been deleted.
        var gone = Int64.min
    }

    /// The parts, ordered by time; together they cover the requested range.
    private(set) var segments: [Segment] = []
    private let marks: [Resolution: Marks]

    /// - Parameters:
    ///   - times: The requested range, in microseconds since 1970.
    ///   - step: The length of the resulting spans, in microseconds.
    ///   - marks: The coverage of the summary tables.
    init(_ times: Range<Int64>, step: Int64, marks: [Resolution: Marks]) {
        self.marks = marks
        read(times, from: Resolution(for: step))
    }

    private mutating func read(_ times: Range<Int64>, from resolution: Resolution) {
        guard !times.isEmpty else { return }
        guard let finer = resolution.finer else {
            return segments.append(Segment(resolution: resolution, times: times))
        }
        let start = min(max(times.lowerBound, firstWhole(of: resolution)), times.upperBound)
        read(times.lowerBound..<start, from: finer)
        read(start..<times.upperBound, from: resolution, or: finer)
    }

    /// Returns the instant up to which finer rows must be read, because they are kept longer than the summaries.
    private func firstWhole(of resolution: Resolution) -> Int64 {
        let gone = gone(resolution)
        return reach(of: resolution.finer) < gone ? gone.rounded(upTo: resolution.length) : .min
    }

    /// Reads whole spans, and the rest at both ends as exactly as finer rows exist.
    private mutating func read(_ times: Range<Int64>, from resolution: Resolution, or finer: Resolution) {
        let gone = reach(of: finer)
        let covered = marks[resolution]?.covered ?? .min
        let (lower, upper) = (times.lowerBound, min(times.upperBound, covered))
        let start = lower < gone ? lower.rounded(downTo: resolution.length) : lower.rounded(upTo: resolution.length)
        let end = upper < gone ? upper.rounded(upTo: resolution.length) : upper.rounded(downTo: resolution.length)
        guard start < end else { return read(times, from: finer) }
        if lower < start { read(lower..<start, from: finer) }
        segments.append(Segment(resolution: resolution, times: start..<end))
        if end < times.upperBound { read(end..<times.upperBound, from: finer) }
    }

    private func gone(_ resolution: Resolution) -> Int64 { marks[resolution]?.gone ?? .min }

    /// Returns the earliest instant for which rows of this or a finer resolution exist.
    private func reach(of resolution: Resolution?) -> Int64 {
        guard let resolution else { return .max }
        return min(gone(resolution), reach(of: resolution.finer))
    }
}
