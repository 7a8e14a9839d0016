/// The numbers of readings: they only grow, and none is given twice.
///
/// Numbers are reserved in blocks ahead of their use, durably and in two places, the database and
/// ``SequenceFile``. Whoever opens the history next begins above the highest mark of both, so that neither a
/// commit that a power loss rolled back nor a database restored from an older copy brings a number back
/// that a subscriber may have seen; only restoring older copies of both would. A crash leaves a gap of at
/// most one block.
struct SequenceNumbers {
    /// Every number is exact as a JSON number too.
    static let highest: Int64 = 1 << 53
    private static let block: Int64 = 100_000

    /// The last number that was given, or may have been.
    private(set) var last: Int64
    /// The highest number that may be given.
    private(set) var reserved: Int64

    /// Begins above `mark`, with nothing reserved.
    init(above mark: Int64) {
        last = mark
        reserved = mark
    }

    /// The mark that has to be durable before `count` more numbers are given; `nil` when it is.
    func markNeeded(for count: Int) -> Int64? {
        let end = last + Int64(count)
        return end > reserved ? end + Self.block : nil
    }

    /// Notes that `mark` is durable.
    mutating func reserve(through mark: Int64) {
        reserved = mark
    }

    /// Gives a number.
    mutating func take() -> Int64 {
        last += 1
        return last
    }
}
