import GattherdYAML

/// One file of a configuration: its text and its name in errors.
package struct ConfigSource: Hashable, Sendable {
    /// The path as the user wrote it.
    package let name: String
    package let bytes: [UInt8]

    package init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }

    /// Creates a source from a text.
    package init(name: String, text: String) {
        self.init(name: name, bytes: Array(text.utf8))
    }
}

/// A source text that places refer to.
///
/// A class, so that a place holds no copy of the text.
final class ConfigFile: Sendable {
    let name: String
    let bytes: [UInt8]
    /// The start of each line in ``bytes``.
    private let lineStarts: [Int]

    init(_ source: ConfigSource) {
        name = source.name
        bytes = source.bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(source.bytes.dropFirst(3)) : source.bytes
        lineStarts = [0] + bytes.indices.filter { [bytes] in bytes[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
    }

    /// The maximum number of sections of a file that are read one by one; a configuration has about ten.
    private static let maximumSections = 32

    /// The text of each top-level key with its value.
    ///
    /// Empty lines in front keep its line numbers.
    var sections: [[UInt8]] {
        let starts = lineStarts.indices.filter { startsSection(lineStarts[$0]) }.prefix(Self.maximumSections + 1)
        let ends = starts.dropFirst().map { lineStarts[$0] } + [bytes.count]
        return zip(starts, ends).prefix(Self.maximumSections).map { line, end in
            Array(repeating: UInt8(ascii: "\n"), count: line) + bytes[lineStarts[line]..<end]
        }
    }

    /// True if a key and its colon begin at `index`, which is the start of a line.
    private func startsSection(_ index: Int) -> Bool {
        let line = bytes[index...].prefix { $0 != UInt8(ascii: "\n") }
        let key = line.prefix { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "_")
        }
        return !key.isEmpty && line.dropFirst(key.count).first == UInt8(ascii: ":")
    }

    /// The characters of a line, counted from 1, without its end; empty when there is no such line.
    func line(_ number: Int) -> [Unicode.Scalar] {
        guard lineStarts.indices.contains(number - 1) else { return [] }
        let rest = bytes[lineStarts[number - 1]...]
        let line = rest.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        return Array(String(decoding: line, as: UTF8.self).unicodeScalars)
    }
}

/// A range of characters in one line of a configuration file.
package struct ConfigPlace: Sendable {
    let source: ConfigFile
    /// The line's number, from 1.
    package let line: Int
    /// The first character's number in the line, from 1.
    package let column: Int
    /// The number of characters, at least 1.
    package let width: Int

    init(_ file: ConfigFile, line: Int, column: Int, width: Int) {
        source = file
        self.line = line
        self.column = column
        self.width = max(width, 1)
    }

    /// Creates the place of `node`, up to the end of its first line.
    init(_ node: YAMLNode, in file: ConfigFile) {
        let (start, end) = (node.position, node.end)
        let last = end.line == start.line ? end.column : file.line(start.line).count + 1
        self.init(file, line: start.line, column: start.column, width: last - start.column)
    }

    /// The file's name.
    package var file: String { source.name }

    /// The maximum number of characters of an excerpt; lines of generated files may be very long.
    private static let longestExcerpt = 160

    /// The line around the place, with control characters made visible, and the place in it.
    var excerpt: (text: String, column: Int, width: Int) {
        let all = source.line(line)
        let half = Self.longestExcerpt / 2
        let start = all.count > Self.longestExcerpt ? max(0, min(column - 1, all.count) - half) : 0
        let part = all[start...].prefix(Self.longestExcerpt)
        var text = String.UnicodeScalarView()
        if start > 0 { text.append("…") }
        for character in part {
            let isControl = character.value < 0x20 || character.value == 0x7F
            text.append(isControl ? (character == "\t" ? " " : "\u{FFFD}") : character)
        }
        if part.endIndex < all.count { text.append("…") }
        let shift = start > 0 ? start - 1 : 0
        return (String(text), column - shift, min(width, max(1, part.endIndex - column + 1)))
    }
}

extension ConfigPlace: Hashable {
    package static func == (left: Self, right: Self) -> Bool {
        left.file == right.file && left.line == right.line && left.column == right.column && left.width == right.width
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(file)
        hasher.combine(line)
        hasher.combine(column)
    }
}

extension ConfigPlace: CustomStringConvertible {
    /// `file:line:column`.
    package var description: String { "\(file):\(line):\(column)" }
}
