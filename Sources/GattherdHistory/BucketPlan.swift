/// Where the numbers of a span of time are read: from hours and minutes where whole ones are wanted, else from
/// samples.
struct BucketPlan {
    struct Segment: Hashable {
        let grain: Grain
        /// Microseconds since 1970.
        let times: Range<Int64>
    }

    /// By time; together they are what was asked for.
    private(set) var segments: [Segment] = []
    private let marks: [Grain: Int64]

    /// - Parameters:
    ///   - times: What is asked for, in microseconds since 1970.
    ///   - step: The length of the spans that are to be filled, in microseconds.
    ///   - marks: The first instants that minutes and hours do not cover.
    init(_ times: Range<Int64>, step: Int64, marks: [Grain: Int64]) {
        self.marks = marks
        read(times, from: Grain(for: step))
    }

    private mutating func read(_ times: Range<Int64>, from grain: Grain) {
        guard !times.isEmpty else { return }
        guard let finer = grain.finer else { return segments.append(Segment(grain: grain, times: times)) }
        let start = times.lowerBound.rounded(upTo: grain.length)
        let end = min(times.upperBound, marks[grain] ?? .min).rounded(downTo: grain.length)
        guard start < end else { return read(times, from: finer) }
        read(times.lowerBound..<start, from: finer)
        segments.append(Segment(grain: grain, times: start..<end))
        read(end..<times.upperBound, from: finer)
    }
}
