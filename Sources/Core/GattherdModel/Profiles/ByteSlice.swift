/// A range of a payload's bytes, such as `2..5`, `-4..` or `7`.
public struct ByteSlice: Hashable, Sendable {
    /// The first byte; a negative number counts from the end.
    public let first: Int
    /// The byte after the last one; `nil` for the end of the payload.
    public let end: Int?

    public init(first: Int, end: Int?) {
        (self.first, self.end) = (first, end)
    }

    /// Returns the range in a payload of `count` bytes; `nil` if the payload is too short.
    public func range(in count: Int) -> Range<Int>? {
        let lower = first < 0 ? count + first : first
        let upper = end.map { $0 < 0 ? count + $0 : $0 } ?? count
        return lower >= 0 && lower <= upper && upper <= count ? lower..<upper : nil
    }

    /// The number of bytes, if it is the same for all payloads.
    public var fixedCount: Int? {
        guard let end else { return first < 0 ? -first : nil }
        return (first < 0) == (end < 0) ? end - first : nil
    }
}
