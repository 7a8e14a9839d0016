import GattherdModel

/// Reads one point of line protocol: `measurement,tag=value field=value time`.
struct PointReader {
    private var rest: ArraySlice<UInt8>
    private static let backslash = UInt8(ascii: "\\")
    private static let quote = UInt8(ascii: "\"")

    private init(_ line: ArraySlice<UInt8>) {
        rest = line
    }

    /// Returns the samples of a point, one for each field.
    static func samples(of line: ArraySlice<UInt8>, _ precision: TimePrecision) throws(ExchangeError) -> [SampleFields]
    {
        var reader = PointReader(line)
        reader.skipEscapeOfComment()
        let measurement = try reader.name(until: ",", " ")
        guard !measurement.isEmpty else { throw ExchangeError("there is no measurement before the tags") }
        var common = SampleFields()
        common.stream = measurement
        while reader.skip(",") {
            let tag = try reader.name(until: "=", ",", " ")
            guard reader.skip("=") else { throw ExchangeError("the tag '\(tag)' has no value") }
            let value = try reader.name(until: ",", " ")
            common.set(tag, to: value)
        }
        let fields = try reader.fields()
        common.time = try reader.time(precision)
        return fields.map { name, value in
            var sample = common
            sample.metric = name == "value" ? measurement : name
            sample.value = value
            return sample
        }
    }

    private mutating func fields() throws(ExchangeError) -> [(name: String, value: SampleValue)] {
        skipSpaces()
        var fields: [(name: String, value: SampleValue)] = []
        repeat {
            let name = try name(until: "=", " ")
            guard !name.isEmpty, skip("=") else {
                throw ExchangeError("there is no field; write name=value after a space, and tags after commas")
            }
            fields.append((name, try value(of: name)))
        } while skip(",")
        return fields
    }

    private mutating func time(_ precision: TimePrecision) throws(ExchangeError) -> Timestamp {
        skipSpaces()
        guard let text = String(validating: rest, as: UTF8.self)?.trimmingSuffix(" "), !text.isEmpty else {
            throw ExchangeError("there is no time after the fields; history needs one")
        }
        guard let number = Int64(text), let instant = precision.instant(number) else {
            throw ExchangeError("'\(text)' is not a time in \(precision.rawValue) since 1970; choose --precision")
        }
        return instant
    }

    private mutating func value(of field: String) throws(ExchangeError) -> SampleValue {
        if rest.first == Self.quote { return .text(try quotedText(field)) }
        let word = try name(until: ",", " ")
        switch word {
        case "t", "T", "true", "True", "TRUE": return .boolean(true)
        case "f", "F", "false", "False", "FALSE": return .boolean(false)
        default: break
        }
        if word.hasSuffix("i") || word.hasSuffix("u"), let number = Int64(word.dropLast()) { return .integer(number) }
        if let number = Double(word), number.isFinite, word.utf8.allSatisfy({ Self.mayBeInNumber($0) }) {
            return .real(number)
        }
        throw ExchangeError(
            "the field '\(field)' has no value that can be read: '\(word)'; texts are in quotation marks"
        )
    }

    private mutating func quotedText(_ field: String) throws(ExchangeError) -> String {
        var text: [UInt8] = []
        rest.removeFirst()
        while rest.first != Self.quote {
            guard let byte = rest.popFirst() else {
                throw ExchangeError("the text of the field '\(field)' does not end", isIncomplete: true)
            }
            guard byte == Self.backslash, let next = rest.first, next == Self.quote || next == Self.backslash else {
                text.append(byte)
                continue
            }
            text.append(next)
            rest.removeFirst()
        }
        rest.removeFirst()
        guard rest.isEmpty || rest.first == UInt8(ascii: ",") || rest.first == UInt8(ascii: " ") else {
            throw ExchangeError("the text of the field '\(field)' goes on after its quotation mark")
        }
        return try Self.string(text)
    }

    /// Returns the text before the first unescaped character of `ends`.
    private mutating func name(until ends: Unicode.Scalar...) throws(ExchangeError) -> String {
        var text: [UInt8] = []
        while let byte = rest.first, !ends.contains(Unicode.Scalar(byte)) {
            rest.removeFirst()
            guard byte == Self.backslash, let next = rest.first, Self.mayBeEscaped(next) else {
                text.append(byte)
                continue
            }
            text.append(next)
            rest.removeFirst()
        }
        return try Self.string(text)
    }

    /// Skips the backslash that ``SampleWriter`` writes so that a measurement is not read as a comment.
    private mutating func skipEscapeOfComment() {
        if rest.starts(with: LineProtocol.escapedComment) { rest.removeFirst() }
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func skipSpaces() {
        rest = rest.drop { $0 == UInt8(ascii: " ") }
    }

    private static func mayBeEscaped(_ byte: UInt8) -> Bool {
        LineProtocol.inTag.contains(byte)
    }

    /// Swift also parses hexadecimal numbers and words such as `nan`, which are rejected here.
    private static func mayBeInNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    private static func string(_ bytes: [UInt8]) throws(ExchangeError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw ExchangeError("the line is not UTF-8") }
        return text
    }
}

extension SampleFields {
    /// Sets the field of history that a tag belongs to; other tags are ignored.
    fileprivate mutating func set(_ tag: String, to value: String) {
        switch tag {
        case "device": device = value
        case "profile": profile = value
        case "stream": stream = value
        case "unit": unit = value
        case "source": source = value
        case "kind": kind = value
        case "element": isRepeated = true
        default: break
        }
    }
}

extension String {
    fileprivate func trimmingSuffix(_ character: Character) -> String {
        var text = self
        while text.last == character { text.removeLast() }
        return text
    }
}
