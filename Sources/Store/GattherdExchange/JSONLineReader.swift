import GattherdModel

/// Reads one line of JSON: an object whose members are not nested.
///
/// RFC 8259; strict, and never traps on any input.
struct JSONLineReader {
    private var rest: ArraySlice<UInt8>

    private init(_ line: ArraySlice<UInt8>) {
        rest = line
    }

    /// Returns the sample of a line and ignores unknown members.
    static func sample(of line: ArraySlice<UInt8>) throws(ExchangeError) -> SampleFields {
        var reader = JSONLineReader(line)
        var fields = SampleFields()
        guard reader.take("{") else { throw ExchangeError("the line is no JSON object") }
        guard !reader.take("}") else { return fields }
        repeat {
            reader.skipSpace()
            let name = try reader.string()
            guard reader.take(":") else { throw ExchangeError("a colon is missing after \"\(name)\"") }
            try fields.set(name, to: try reader.value(of: name))
        } while reader.take(",")
        guard reader.take("}") else { throw ExchangeError("the object does not end, or a comma is missing") }
        reader.skipSpace()
        guard reader.rest.isEmpty else { throw ExchangeError("something follows the object; write one per line") }
        return fields
    }

    private mutating func value(of name: String) throws(ExchangeError) -> SampleValue {
        skipSpace()
        switch rest.first {
        case UInt8(ascii: "\""): return .text(try string())
        case let octet? where octet == UInt8(ascii: "-") || Self.isDigit(octet): return try number()
        case UInt8(ascii: "["), UInt8(ascii: "{"):
            throw ExchangeError("\"\(name)\" is nested; write a line for each sample")
        default: return try word(name)
        }
    }

    private mutating func word(_ name: String) throws(ExchangeError) -> SampleValue {
        for (word, value) in [("null", SampleValue.null), ("true", .boolean(true)), ("false", .boolean(false))]
        where rest.starts(with: word.utf8) {
            rest.removeFirst(word.utf8.count)
            return value
        }
        throw ExchangeError("\"\(name)\" has no value that is JSON")
    }

    private mutating func number() throws(ExchangeError) -> SampleValue {
        let start = rest
        _ = skip("-")
        if !skip("0") { try skipDigits() }
        var isInteger = true
        if skip(".") {
            try skipDigits()
            isInteger = false
        }
        if skip("e") || skip("E") {
            _ = skip("+") || skip("-")
            try skipDigits()
            isInteger = false
        }
        let text = String(decoding: start[..<rest.startIndex], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard let real = Double(text), real.isFinite else { throw ExchangeError("the number \(text) is too large") }
        return .real(real)
    }

    private mutating func string() throws(ExchangeError) -> String {
        guard skip("\"") else { throw ExchangeError("a quotation mark is missing") }
        var text: [UInt8] = []
        while let octet = rest.popFirst() {
            switch octet {
            case UInt8(ascii: "\""):
                guard let string = String(validating: text, as: UTF8.self) else {
                    throw ExchangeError("the line is not UTF-8")
                }
                return string
            case UInt8(ascii: "\\"): text += String(try escape()).utf8
            case 0..<0x20: throw ExchangeError("a control character is in a text")
            default: text.append(octet)
            }
        }
        throw ExchangeError("a text does not end")
    }

    private mutating func escape() throws(ExchangeError) -> Unicode.Scalar {
        switch rest.popFirst() {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try codePoint()
        default: throw ExchangeError("an escape is unknown")
        }
    }

    /// Four hexadecimal digits, or a surrogate pair of them.
    private mutating func codePoint() throws(ExchangeError) -> Unicode.Scalar {
        let unit = try hexadecimal()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard UTF16.isLeadSurrogate(unit), skip("\\"), skip("u") else { throw ExchangeError("a surrogate is alone") }
        let trail = try hexadecimal()
        guard UTF16.isTrailSurrogate(trail) else { throw ExchangeError("a surrogate is alone") }
        return UTF16.decode(UTF16.EncodedScalar([unit, trail]))
    }

    private mutating func hexadecimal() throws(ExchangeError) -> UInt16 {
        let digits = rest.prefix(4)
        guard digits.count == 4, !digits.contains(UInt8(ascii: "+")), !digits.contains(UInt8(ascii: "-")),
            let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw ExchangeError("four hexadecimal digits must follow \\u") }
        rest.removeFirst(4)
        return unit
    }

    private mutating func skipDigits() throws(ExchangeError) {
        let digits = rest.prefix { Self.isDigit($0) }
        guard !digits.isEmpty else { throw ExchangeError("a digit is missing in a number") }
        rest.removeFirst(digits.count)
    }

    private static func isDigit(_ octet: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet)
    }

    /// Consumes `character` and the space before it.
    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        skipSpace()
        return skip(character)
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func skipSpace() {
        rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
    }
}

extension SampleFields {
    fileprivate mutating func set(_ name: String, to found: SampleValue) throws(ExchangeError) {
        switch name {
        case "time": time = try Self.time(found)
        case "ts":
            let instant = Timestamp(microseconds: try Self.integer(found, name))
            time = time ?? instant
        case "seq": seq = try Self.integer(found, name)
        case "device": device = try Self.text(found, name)
        case "profile": profile = try Self.text(found, name)
        case "stream": stream = try Self.text(found, name)
        case "metric": metric = try Self.text(found, name)
        case "unit": unit = try Self.text(found, name)
        case "source": source = try Self.text(found, name)
        case "kind": kind = try Self.text(found, name)
        case "repeated": isRepeated = found == .boolean(true) || found == .integer(1)
        case "value": value = found
        default: break
        }
    }

    private static func time(_ value: SampleValue) throws(ExchangeError) -> Timestamp {
        guard case .text(let text) = value, let time = Timestamp(rfc3339: text.utf8) else {
            throw ExchangeError("\"time\" is not RFC 3339; write for example \"2026-11-21T03:20:05.123456Z\"")
        }
        return time
    }

    private static func integer(_ value: SampleValue, _ name: String) throws(ExchangeError) -> Int64 {
        guard case .integer(let number) = value else { throw ExchangeError("\"\(name)\" is not a whole number") }
        return number
    }

    /// `nil` for `null`.
    private static func text(_ value: SampleValue, _ name: String) throws(ExchangeError) -> String? {
        switch value {
        case .text(let text): return text
        case .null: return nil
        default: throw ExchangeError("\"\(name)\" is not a text")
        }
    }
}
