/// The difference of two texts with equally many lines, in the unified format.
package struct LineDifference {
    /// The lines around a change.
    private static let context = 3

    private let before: [Substring]
    private let after: [Substring]

    package init(_ before: String, _ after: String) {
        self.before = before.split(separator: "\n", omittingEmptySubsequences: false)
        self.after = after.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// Returns the difference.
    ///
    /// - Parameter name: The name of the file.
    /// - Returns: The lines; none if the texts are equal.
    package func lines(of name: String) -> [String] {
        let changed = zip(before, after).enumerated().filter { $0.element.0 != $0.element.1 }.map(\.offset)
        guard !changed.isEmpty else { return [] }
        return ["--- \(name)", "+++ \(name)"] + Self.hunks(changed, before.count).flatMap { hunk($0) }
    }

    /// The ranges of lines with changes and their surroundings.
    private static func hunks(_ changed: [Int], _ count: Int) -> [Range<Int>] {
        var hunks: [Range<Int>] = []
        for line in changed {
            let range = max(0, line - context)..<min(count, line + context + 1)
            if let last = hunks.last, range.lowerBound <= last.upperBound {
                hunks[hunks.count - 1] = last.lowerBound..<range.upperBound
            } else {
                hunks.append(range)
            }
        }
        return hunks
    }

    private func hunk(_ range: Range<Int>) -> [String] {
        // The text after the last line break is no line.
        let isEndEmpty = range.upperBound == before.count && before.last?.isEmpty == true
        let range = isEndEmpty ? range.dropLast() : range
        var lines = ["@@ -\(range.lowerBound + 1),\(range.count) +\(range.lowerBound + 1),\(range.count) @@"]
        var removed: [String] = []
        var added: [String] = []
        for index in range {
            guard before[index] == after[index] else {
                removed.append("-" + before[index])
                added.append("+" + after[index])
                continue
            }
            lines += removed + added + [" " + before[index]]
            (removed, added) = ([], [])
        }
        return lines + removed + added
    }
}
