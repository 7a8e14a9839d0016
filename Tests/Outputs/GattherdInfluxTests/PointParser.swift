/// A point as a server understands it; a parser of line protocol that shares nothing with the writer.
struct ParsedPoint: Hashable {
    enum Value: Hashable {
        case float(Double)
        case integer(Int64)
        case boolean(Bool)
        case text(String)
    }

    var measurement = ""
    var tags: [String: String] = [:]
    var fields: [String: Value] = [:]
    var time: Int64 = 0

    struct Invalid: Error {
        let line: String
    }

    static func parse(_ text: [UInt8]) throws -> [ParsedPoint] {
        try text.split(separator: UInt8(ascii: "\n")).map { try parse(line: String(decoding: $0, as: UTF8.self)) }
    }

    /// Splits at unescaped and unquoted separators, then removes escapes.
    private static func parse(line: String) throws -> ParsedPoint {
        let parts = split(line, at: " ", quotes: true)
        guard parts.count == 3, let time = Int64(parts[2]) else { throw Invalid(line: line) }
        var point = ParsedPoint()
        point.time = time
        let keys = split(parts[0], at: ",", quotes: false)
        point.measurement = unescaped(keys[0])
        for tag in keys.dropFirst() {
            let pair = split(tag, at: "=", quotes: false)
            guard pair.count == 2, !pair[0].isEmpty, !pair[1].isEmpty else { throw Invalid(line: line) }
            guard point.tags.updateValue(unescaped(pair[1]), forKey: unescaped(pair[0])) == nil else {
                throw Invalid(line: line)
            }
        }
        for field in split(parts[1], at: ",", quotes: true) {
            let pair = split(field, at: "=", quotes: true)
            guard pair.count == 2, let value = value(pair[1]) else { throw Invalid(line: line) }
            guard point.fields.updateValue(value, forKey: unescaped(pair[0])) == nil else { throw Invalid(line: line) }
        }
        return point
    }

    private static func split(_ text: String, at separator: Unicode.Scalar, quotes: Bool) -> [String] {
        var (parts, isQuoted, isEscaped) = ([""], false, false)
        for character in text.unicodeScalars {
            if character == separator, !isEscaped, !isQuoted {
                parts.append("")
                continue
            }
            if quotes, character == "\"", !isEscaped { isQuoted.toggle() }
            isEscaped = character == "\\" && !isEscaped
            parts[parts.count - 1].unicodeScalars.append(character)
        }
        return parts
    }

    private static func value(_ text: String) -> Value? {
        let scalars = text.unicodeScalars
        if scalars.first == "\"" {
            guard scalars.count > 1, scalars.last == "\"" else { return nil }
            return .text(unescaped(String(scalars.dropFirst().dropLast())))
        }
        if text == "true" || text == "false" { return .boolean(text == "true") }
        if text.last == "i" { return Int64(text.dropLast()).map { .integer($0) } }
        return Double(text).map { .float($0) }
    }

    private static func unescaped(_ text: String) -> String {
        var (result, isEscaped) = ("", false)
        for character in text.unicodeScalars {
            if character == "\\", !isEscaped {
                isEscaped = true
            } else {
                result.unicodeScalars.append(character)
                isEscaped = false
            }
        }
        return result
    }
}
