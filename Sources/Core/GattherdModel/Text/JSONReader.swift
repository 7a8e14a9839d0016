/// Reads untrusted JSON: strict (RFC 8259), bounded in depth and in bytes, and without traps.
package struct JSONReader {
    /// The maximum depth of nested values.
    private static let maximumDepth = 16
    /// The default maximum length of a text.
    package static let maximumLength = 1 << 20

    private let bytes: ArraySlice<UInt8>
    private var position: Int

    private init(_ bytes: ArraySlice<UInt8>, maximum: Int) throws(JSONError) {
        self.bytes = bytes
        position = bytes.startIndex
        guard bytes.count <= maximum else { throw error("\(bytes.count) bytes; at most \(maximum) are read") }
    }

    /// Reads a whole text.
    ///
    /// - Throws: ``JSONError`` if the text is invalid, has a duplicate name, is nested too deeply, or is longer than
    ///   `maximum` bytes.
    package static func value(
        of bytes: ArraySlice<UInt8>,
        maximum: Int = maximumLength
    ) throws(JSONError) -> JSONValue {
        var reader = try JSONReader(bytes, maximum: maximum)
        let value = try reader.value(depth: 0)
        try reader.finish()
        return value
    }

    package static func value(of bytes: [UInt8], maximum: Int = maximumLength) throws(JSONError) -> JSONValue {
        try value(of: bytes[...], maximum: maximum)
    }

    /// Reads an object without building it: passes each member to `body`, in order.
    ///
    /// - Throws: ``JSONError`` as ``value(of:maximum:)``, except for duplicate names.
    package static func forEachMember(
        of bytes: ArraySlice<UInt8>,
        maximum: Int = maximumLength,
        _ body: (String, JSONValue) -> Void
    ) throws(JSONError) {
        var reader = try JSONReader(bytes, maximum: maximum)
        reader.skipSpace()
        guard reader.peek == UInt8(ascii: "{") else { throw reader.error("an object is missing") }
        try reader.members { reader, name throws(JSONError) in body(name, try reader.value(depth: 1)) }
        try reader.finish()
    }

    private mutating func finish() throws(JSONError) {
        skipSpace()
        guard position == bytes.endIndex else { throw error("unexpected text after the value") }
    }
}

/// Reads the values of each kind.
extension JSONReader {
    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        guard depth < Self.maximumDepth else { throw error("nested too deeply") }
        skipSpace()
        switch peek {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case let byte? where byte == UInt8(ascii: "-") || Self.isDigit(byte): return try number()
        default: return try word()
        }
    }

    private mutating func object(depth: Int) throws(JSONError) -> [JSONMember] {
        var members: [JSONMember] = []
        // A set, because a search of a list for each member takes quadratic time.
        var names: Set<String> = []
        try self.members { reader, name throws(JSONError) in
            reader.skipSpace()
            let start = reader.position
            let value = try reader.value(depth: depth + 1)
            guard names.insert(name).inserted else { throw reader.error("'\(name)' occurs twice") }
            let source = String(decoding: reader.bytes[start..<reader.position], as: UTF8.self)
            members.append(JSONMember(name: name, value: value, source: source))
        }
        return members
    }

    /// Reads an object's braces, names and separators; `value` reads each value.
    private mutating func members(
        _ value: (inout JSONReader, String) throws(JSONError) -> Void
    ) throws(JSONError) {
        position += 1
        guard !accept("}") else { return }
        repeat {
            skipSpace()
            guard peek == UInt8(ascii: "\"") else { throw error("a member's name must be a string") }
            let name = try string()
            guard accept(":") else { throw error("a colon is missing after '\(name)'") }
            try value(&self, name)
        } while accept(",")
        guard accept("}") else { throw error("an object is not closed, or a comma is missing") }
    }

    private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
        position += 1
        guard !accept("]") else { return [] }
        var elements: [JSONValue] = []
        repeat { elements.append(try value(depth: depth + 1)) } while accept(",")
        guard accept("]") else { throw error("an array is not closed, or a comma is missing") }
        return elements
    }

    private mutating func word() throws(JSONError) -> JSONValue {
        for (word, value) in [("null", JSONValue.null), ("true", .boolean(true)), ("false", .boolean(false))]
        where bytes[position...].starts(with: word.utf8) {
            position += word.utf8.count
            return value
        }
        throw error("a value is missing")
    }

    private mutating func number() throws(JSONError) -> JSONValue {
        let start = position
        _ = skip("-")
        if !skip("0") { try skipDigits() }
        let isInteger = peek != UInt8(ascii: ".") && peek != UInt8(ascii: "e") && peek != UInt8(ascii: "E")
        if skip(".") { try skipDigits() }
        if skip("e") || skip("E") {
            _ = skip("+") || skip("-")
            try skipDigits()
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard let real = Double(text), real.isFinite else { throw error("the number \(text) is too large") }
        return .real(real)
    }

    private mutating func skipDigits() throws(JSONError) {
        let start = position
        while let byte = peek, Self.isDigit(byte) { position += 1 }
        guard position > start else { throw error("a number lacks digits") }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}

/// Reads strings.
extension JSONReader {
    private mutating func string() throws(JSONError) -> String {
        position += 1
        let start = position
        while let byte = peek, byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
            position += 1
        }
        // Most strings have no escape, and are not copied first.
        if peek == UInt8(ascii: "\"") {
            defer { position += 1 }
            return try text(bytes[start..<position])
        }
        return try text(escaped(after: bytes[start..<position])[...])
    }

    /// Reads the rest of a string that has an escape.
    private mutating func escaped(after beginning: ArraySlice<UInt8>) throws(JSONError) -> [UInt8] {
        var text = Array(beginning)
        while let byte = peek, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw error("a control character is in a string") }
            position += 1
            if byte == UInt8(ascii: "\\") {
                text.append(contentsOf: String(try escape()).utf8)
            } else {
                text.append(byte)
            }
        }
        guard skip("\"") else { throw error("a string is not closed") }
        return text
    }

    private func text(_ bytes: ArraySlice<UInt8>) throws(JSONError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw error("a string is not UTF-8") }
        return text
    }

    private mutating func escape() throws(JSONError) -> Unicode.Scalar {
        let letter = peek
        position += letter == nil ? 0 : 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(letter ?? 0)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try codePoint()
        default: throw error("an escape is unknown")
        }
    }

    /// Reads four hexadecimal digits, or a surrogate pair of them.
    private mutating func codePoint() throws(JSONError) -> Unicode.Scalar {
        let unit = try hexadecimal()
        guard UTF16.isLeadSurrogate(unit) else {
            guard let scalar = Unicode.Scalar(unit) else { throw error("a surrogate has no partner") }
            return scalar
        }
        guard skip("\\"), skip("u") else { throw error("a surrogate has no partner") }
        let trail = try hexadecimal()
        guard UTF16.isTrailSurrogate(trail) else { throw error("a surrogate has no partner") }
        return UTF16.decode(UTF16.EncodedScalar([unit, trail]))
    }

    private mutating func hexadecimal() throws(JSONError) -> UInt16 {
        let digits = bytes[position...].prefix(4)
        guard digits.count == 4, !digits.contains(where: { "+-".utf8.contains($0) }),
            let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw error("an escape needs four hexadecimal digits") }
        position += 4
        return unit
    }
}

/// Reads the bytes of the text.
extension JSONReader {
    private var peek: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    private mutating func skip(_ scalar: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: scalar) else { return false }
        position += 1
        return true
    }

    /// Skips white space and then `scalar`, if it is next.
    private mutating func accept(_ scalar: Unicode.Scalar) -> Bool {
        skipSpace()
        return skip(scalar)
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || (0x09...0x0A).contains(byte) || byte == 0x0D { position += 1 }
    }

    private func error(_ detail: String) -> JSONError {
        JSONError(detail: detail, offset: position - bytes.startIndex)
    }
}
