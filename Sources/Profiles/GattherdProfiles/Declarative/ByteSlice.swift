import GattherdGATT

/// A range of a payload's bytes, such as `2..5`, `-4..` or `7`.
struct ByteSlice: Hashable, Sendable {
    private static let furthest = 512

    /// The first byte; a negative number counts from the end.
    let first: Int
    /// The byte after the last one; `nil` for the end of the payload.
    let end: Int?

    /// Returns the range in a payload of `count` bytes; `nil` if the payload is too short.
    func range(in count: Int) -> Range<Int>? {
        let lower = first < 0 ? count + first : first
        let upper = end.map { $0 < 0 ? count + $0 : $0 } ?? count
        return lower >= 0 && lower <= upper && upper <= count ? lower..<upper : nil
    }

    /// The number of bytes, if it is the same for all payloads.
    var fixedCount: Int? {
        guard let end else { return first < 0 ? -first : nil }
        return (first < 0) == (end < 0) ? end - first : nil
    }
}

extension ByteSlice {
    /// Parses `7`, `2..5`, `..5`, `-4..` or `..`; `nil` for other texts and for empty slices.
    init?(_ text: some StringProtocol) {
        let ends = text.split(separator: "..", maxSplits: 2, omittingEmptySubsequences: false)
        guard (1...2).contains(ends.count) else { return nil }
        let numbers = ends.map { Integers.parse($0).flatMap { Int(exactly: $0) } }
        let isNear = numbers.allSatisfy { abs(clamping: $0) <= Self.furthest }
        guard isNear, zip(ends, numbers).allSatisfy({ $0.isEmpty || $1 != nil }) else { return nil }
        guard ends.count == 2 else {
            guard let first = numbers[0] else { return nil }
            self.init(first: first, end: first == -1 ? nil : first + 1)
            return
        }
        self.init(first: numbers[0] ?? 0, end: numbers[1])
        if let count = fixedCount, count <= 0 { return nil }
    }
}

private func abs(clamping number: Int?) -> Int {
    Int(clamping: (number ?? 0).magnitude)
}

extension ProfileGrammar<ByteSlice> {
    static let slice = ProfileGrammar("bytes of the payload, such as 2..5 (from 2 to before 5), -4.. or 7") { text in
        ByteSlice(text)
    }
}
