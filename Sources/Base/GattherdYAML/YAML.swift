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

/// A syntax error with its position.
public struct YAMLError: Error, Hashable, Sendable {
    public let position: YAMLPosition
    /// The problem and its remedy, as text for users.
    public let problem: String

    public init(position: YAMLPosition, problem: String) {
        self.position = position
        self.problem = problem
    }
}

extension YAMLError: CustomStringConvertible {
    /// The error in the form `line:column: problem`.
    public var description: String { "\(position): \(problem)" }
}

/// A text in valid UTF-8 without a byte order mark.
struct SourceText {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) throws(YAMLError) {
        self.bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        guard let offset = Self.firstInvalid(self.bytes) else { return }
        throw YAMLError(position: position(ofByte: offset), problem: Self.encodingProblem(bytes))
    }

    /// Returns the position of the byte at `offset`.
    func position(ofByte offset: Int) -> YAMLPosition {
        var line = 1
        var start = 0
        let end = min(max(offset, 0), bytes.count)
        for index in 0..<end where bytes[index] == UInt8(ascii: "\n") {
            line += 1
            start = index + 1
        }
        return YAMLPosition(
            line: line,
            column: 1 + String(decoding: bytes[start..<end], as: UTF8.self).unicodeScalars.count
        )
    }

    /// Returns the character at a position, if there is one.
    func character(at position: YAMLPosition) -> Unicode.Scalar? {
        let lines = bytes.split(
            separator: UInt8(ascii: "\n"),
            maxSplits: position.line,
            omittingEmptySubsequences: false
        )
        guard lines.indices.contains(position.line - 1) else { return nil }
        return String(decoding: lines[position.line - 1], as: UTF8.self)
            .unicodeScalars.dropFirst(position.column - 1).first
    }

    private static func firstInvalid(_ bytes: [UInt8]) -> Int? {
        do {
            _ = try UTF8Span(validating: bytes.span)
            return nil
        } catch {
            return error.byteOffsets.lowerBound
        }
    }

    private static func encodingProblem(_ bytes: [UInt8]) -> String {
        bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF])
            ? "this is UTF-16; save the file as UTF-8" : "a byte that is not UTF-8; save the file as UTF-8"
    }
}
