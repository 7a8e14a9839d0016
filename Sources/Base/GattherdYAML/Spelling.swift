/// Finds the word that a misspelt word is most like.
package enum Spelling {
    /// The longest word, in bytes, that is compared.
    private static let longest = 64

    /// The word of `words` that `word` is a likely misspelling of; the first of equally near ones.
    package static func nearest(to word: String, among words: [String]) -> String? {
        let typed = Array(word.lowercased().utf8)
        guard !typed.isEmpty, typed.count <= longest else { return nil }
        let tolerance = max(1, typed.count / 3)
        return
            words
            .compactMap { word -> (word: String, distance: Int)? in
                let known = Array(word.utf8.prefix(longest))
                // The distance is at least the difference of the lengths.
                guard abs(known.count - typed.count) <= tolerance else { return nil }
                return (word: word, distance: distance(typed, known))
            }
            .filter { $0.distance <= tolerance }
            .min { $0.distance < $1.distance }?
            .word
    }

    /// The number of insertions, deletions, replacements and swaps of neighbours between two words.
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for row in left.indices {
            var current = [row + 1]
            for column in right.indices {
                let isSame = left[row] == right[column]
                var best = min(last[column] + (isSame ? 0 : 1), last[column + 1] + 1, current[column] + 1)
                let isSwap = row > 0 && column > 0 && left[row] == right[column - 1] && left[row - 1] == right[column]
                if isSwap { best = min(best, beforeLast[column - 1] + 1) }
                current.append(best)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
