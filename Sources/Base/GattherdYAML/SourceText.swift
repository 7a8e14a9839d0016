/// A text that is known to be UTF-8 without a byte order mark.
struct SourceText {
    let octets: [UInt8]

    init(_ octets: [UInt8]) throws(YAMLError) {
        self.octets = octets.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(octets.dropFirst(3)) : octets
        guard let valid = Self.firstInvalid(self.octets) else { return }
        throw YAMLError(position: position(ofOctet: valid), problem: Self.encodingProblem(octets))
    }

    /// Where the octet at `offset` stands.
    func position(ofOctet offset: Int) -> YAMLPosition {
        var line = 1
        var start = 0
        let end = min(max(offset, 0), octets.count)
        for index in 0..<end where octets[index] == UInt8(ascii: "\n") {
            line += 1
            start = index + 1
        }
        return YAMLPosition(
            line: line,
            column: 1 + String(decoding: octets[start..<end], as: UTF8.self).unicodeScalars.count
        )
    }

    /// The character at a place, if there is one.
    func character(at position: YAMLPosition) -> Unicode.Scalar? {
        let lines = octets.split(
            separator: UInt8(ascii: "\n"),
            maxSplits: position.line,
            omittingEmptySubsequences: false
        )
        guard lines.indices.contains(position.line - 1) else { return nil }
        return String(decoding: lines[position.line - 1], as: UTF8.self)
            .unicodeScalars.dropFirst(position.column - 1).first
    }

    private static func firstInvalid(_ octets: [UInt8]) -> Int? {
        do {
            _ = try UTF8Span(validating: octets.span)
            return nil
        } catch {
            return error.byteOffsets.lowerBound
        }
    }

    private static func encodingProblem(_ octets: [UInt8]) -> String {
        octets.starts(with: [0xFF, 0xFE]) || octets.starts(with: [0xFE, 0xFF])
            ? "this is UTF-16; save the file as UTF-8" : "an octet that is not UTF-8; save the file as UTF-8"
    }
}
