/// The one reader of YAML: text to a tree with positions.
///
/// It reads YAML 1.1 as libyaml does, but one document, no tags, and only texts as keys. Anchors and aliases work;
/// what they expand to is bounded by ``maximumNodes`` and ``maximumDepth``.
public enum YAML {
    /// How deep lists and mappings may nest.
    public static let maximumDepth = 64
    /// How many values a text may have, after its aliases are expanded.
    public static let maximumNodes = 200_000

    /// Reads one document; `nil` when there is nothing in it.
    ///
    /// - Throws: ``YAMLError`` at the first thing that is wrong.
    public static func parse(_ text: String) throws(YAMLError) -> YAMLNode? {
        try parse(Array(text.utf8))
    }

    /// Reads one document from UTF-8, with or without a byte order mark; `nil` when there is nothing in it.
    ///
    /// - Throws: ``YAMLError`` at the first thing that is wrong.
    public static func parse(_ octets: [UInt8]) throws(YAMLError) -> YAMLNode? {
        let source = try SourceText(octets)
        return unsafe try source.octets.withUnsafeBufferPointer { input throws(YAMLError) in
            var composer = Composer(events: unsafe try YAMLParser(input, source: source))
            return try composer.document()
        }
    }
}
