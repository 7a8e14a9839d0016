extension String {
    /// Returns the text with another one in place of each occurrence of some scalars, for escapes.
    ///
    /// `replacing(_:with:)` compares Characters: it misses a quote before a combining mark, which readers of the text
    /// still see as a quote.
    package func replacingScalars(_ other: String, with replacement: String) -> String {
        String(unicodeScalars.replacing(other.unicodeScalars, with: replacement.unicodeScalars))
    }
}
