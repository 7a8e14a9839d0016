/// A reader of YAML: text to a tree with positions.
///
/// YAML 1.1 as in libyaml, with one document, without tags, and with scalars as keys. ``maximumNodes`` and
/// ``maximumDepth`` bound the expansion of aliases.
public enum YAML {
    /// The maximum depth of lists and mappings.
    public static let maximumDepth = 64
    /// The maximum number of values after the expansion of aliases.
    public static let maximumNodes = 200_000

    /// Reads one document; returns `nil` if it is empty.
    ///
    /// - Throws: ``YAMLError`` at the first error.
    public static func parse(_ text: String) throws(YAMLError) -> YAMLNode? {
        try parse(Array(text.utf8))
    }

    /// Reads one document in UTF-8, with or without a byte order mark; returns `nil` if it is empty.
    ///
    /// - Throws: ``YAMLError`` at the first error.
    public static func parse(_ bytes: [UInt8]) throws(YAMLError) -> YAMLNode? {
        let source = try SourceText(bytes)
        return unsafe try source.bytes.withUnsafeBufferPointer { input throws(YAMLError) in
            var composer = Composer(events: unsafe try YAMLParser(input, source: source))
            return try composer.document()
        }
    }
}
