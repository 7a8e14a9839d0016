/// The reason why a request is refused: invalid JSON, an unexpected value, or a refused action.
struct JSONError: Error, Hashable, CustomStringConvertible {
    /// The reason in words, for people.
    let description: String
    /// The reason as one word, for programs: the member `reason` of a response.
    var reason: String?
}

/// A JSON value.
enum JSONValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    case string(String)
    case array([JSONValue])
    case object([JSONMember])
}

/// A member of an object.
struct JSONMember: Hashable, Sendable {
    let name: String
    let value: JSONValue
    /// The value's JSON text as received.
    let source: String
}

/// Reads untrusted JSON: strict (RFC 8259), bounded in depth, and without traps.
struct JSONReader {
    /// The maximum depth of nested values.
    private static let maximumDepth = 16

    private let octets: [UInt8]
    private var position = 0

    private init(_ octets: [UInt8]) {
        self.octets = octets
    }

    /// Reads a whole text.
    static func value(of octets: [UInt8]) throws(JSONError) -> JSONValue {
        var reader = JSONReader(octets)
        let value = try reader.value(depth: 0)
        reader.skipSpace()
        guard reader.position == octets.count else { throw reader.error("unexpected text after the value") }
        return value
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        guard depth < Self.maximumDepth else { throw error("nested too deeply") }
        skipSpace()
        switch peek {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case let octet? where octet == UInt8(ascii: "-") || Self.isDigit(octet): return try number()
        default: return try word()
        }
    }

    private mutating func object(depth: Int) throws(JSONError) -> [JSONMember] {
        var members: [JSONMember] = []
        position += 1
        guard !accept("}") else { return members }
        repeat {
            skipSpace()
            guard peek == UInt8(ascii: "\"") else { throw error("a member's name must be a string") }
            let name = try string()
            guard accept(":") else { throw error("a colon is missing") }
            skipSpace()
            let start = position
            let value = try value(depth: depth + 1)
            guard !members.contains(where: { $0.name == name }) else { throw error("'\(name)' is there twice") }
            let source = String(decoding: octets[start..<position], as: UTF8.self)
            members.append(JSONMember(name: name, value: value, source: source))
        } while accept(",")
        guard accept("}") else { throw error("an object is not closed") }
        return members
    }

    private mutating func array(depth: Int) throws(JSONError) -> JSONValue {
        position += 1
        guard !accept("]") else { return .array([]) }
        var elements: [JSONValue] = []
        repeat { elements.append(try value(depth: depth + 1)) } while accept(",")
        guard accept("]") else { throw error("an array is not closed") }
        return .array(elements)
    }

    private mutating func word() throws(JSONError) -> JSONValue {
        for (word, value) in [("null", JSONValue.null), ("true", .boolean(true)), ("false", .boolean(false))]
        where octets[position...].starts(with: word.utf8) {
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
        let text = String(decoding: octets[start..<position], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard let real = Double(text), real.isFinite else { throw error("a number is too large") }
        return .real(real)
    }

    private mutating func string() throws(JSONError) -> String {
        var text: [UInt8] = []
        position += 1
        while let octet = peek, octet != UInt8(ascii: "\"") {
            guard octet >= 0x20 else { throw error("a control character is in a string") }
            if octet == UInt8(ascii: "\\") {
                text.append(contentsOf: String(try escape()).utf8)
            } else {
                text.append(octet)
                position += 1
            }
        }
        guard skip("\"") else { throw error("a string is not closed") }
        guard let string = String(validating: text, as: UTF8.self) else { throw error("a string is not UTF-8") }
        return string
    }

    private mutating func escape() throws(JSONError) -> Unicode.Scalar {
        position += 1
        let letter = peek
        position += 1
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
            guard let scalar = Unicode.Scalar(unit) else { throw error("a surrogate is alone") }
            return scalar
        }
        guard skip("\\"), skip("u") else { throw error("a surrogate is alone") }
        let trail = try hexadecimal()
        guard UTF16.isTrailSurrogate(trail) else { throw error("a surrogate is alone") }
        let code = 0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(trail) - 0xDC00)
        guard let scalar = Unicode.Scalar(code) else { throw error("a surrogate is alone") }
        return scalar
    }

    private mutating func hexadecimal() throws(JSONError) -> UInt16 {
        let digits = octets[position...].prefix(4)
        guard digits.count == 4, !digits.contains(where: { "+-".utf8.contains($0) }),
            let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw error("an escape needs four hexadecimal digits") }
        position += 4
        return unit
    }

    private mutating func skipDigits() throws(JSONError) {
        let start = position
        while let octet = peek, Self.isDigit(octet) { position += 1 }
        guard position > start else { throw error("a number lacks digits") }
    }

    private static func isDigit(_ octet: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet)
    }

    private var peek: UInt8? { position < octets.count ? octets[position] : nil }

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
        while let octet = peek, octet == 0x20 || (0x09...0x0A).contains(octet) || octet == 0x0D { position += 1 }
    }

    private func error(_ what: String) -> JSONError {
        JSONError(description: "not JSON at octet \(position): \(what)")
    }
}
