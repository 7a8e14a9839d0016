import GattherdGATT
import GattherdModel

extension ByteSlice {
    private static let furthest = 512

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
