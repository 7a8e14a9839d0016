/// The sequence numbers of readings, which only grow and are never reused.
///
/// Numbers are reserved durably, in blocks ahead of their use, in both the database and ``SequenceFile``. The next
/// opener starts above the highest mark of both. Neither a commit that a power loss rolled back nor a database restored
/// from an older copy therefore repeats a number that a subscriber may have seen; only older copies of both would. A
/// crash leaves a gap of at most one block.
struct SequenceNumbers {
    /// The maximum, which is exact as a JSON number too.
    static let highest: Int64 = 1 << 53
    private static let block: Int64 = 100_000

    /// The last number that was or may have been assigned.
    private(set) var last: Int64
    /// The highest number that may be assigned.
    private(set) var reserved: Int64

    /// Starts above `mark`, without a reservation.
    init(above mark: Int64) {
        last = mark
        reserved = mark
    }

    /// Returns the mark that must be durable before `count` more numbers are assigned; `nil` if it is durable already.
    func markNeeded(for count: Int) -> Int64? {
        let end = last + Int64(count)
        return end > reserved ? end + Self.block : nil
    }

    /// Records that `mark` is durable.
    mutating func reserve(through mark: Int64) {
        reserved = mark
    }

    /// Returns the next number.
    mutating func take() -> Int64 {
        last += 1
        return last
    }
}
