/// The syntax of InfluxDB's line protocol, version 2: `measurement,tag=value field=value time`.
public enum LineProtocol {
    private static let inMeasurement: Set<UInt8> = [UInt8(ascii: ","), UInt8(ascii: " ")]
    /// The bytes that a backslash precedes in names and values of tags, and in names of fields.
    public static let inTag: Set<UInt8> = [UInt8(ascii: ","), UInt8(ascii: " "), UInt8(ascii: "=")]
    /// The start of a measurement whose name begins with `#`; other readers keep the backslash.
    public static let escapedComment: [UInt8] = [backslash, UInt8(ascii: "#")]
    private static let backslash = UInt8(ascii: "\\")

    /// Formats a value for the text after `=`; `nil` if the protocol cannot represent it.
    public static func field(_ value: SampleValue) -> String? {
        switch value {
        case .integer(let number): "\(number)i"
        case .real(let number): number.isFinite ? "\(number)" : nil
        case .boolean(let flag): flag ? "true" : "false"
        case .text(let text): quoted(text)
        case .null: nil
        }
    }

    /// Writes a name or a tag's value, with spaces for control characters, `/` for `\` and `'` for `"`.
    ///
    /// InfluxDB reads `\\` as two backslashes, VictoriaMetrics as one. So no escape makes a backslash safe for both.
    public static func escape(_ text: String, _ special: Set<UInt8> = inTag, to bytes: inout [UInt8]) {
        for byte in text.utf8 {
            let written = safe(byte)
            if special.contains(written) { bytes.append(backslash) }
            bytes.append(written)
        }
    }

    private static func safe(_ byte: UInt8) -> UInt8 {
        switch byte {
        case 0..<0x20, 0x7F: UInt8(ascii: " ")
        case backslash: UInt8(ascii: "/")
        case UInt8(ascii: "\""): UInt8(ascii: "'")
        default: byte
        }
    }

    /// Writes the measurement at the start of a line.
    public static func measure(_ name: String, to bytes: inout [UInt8]) {
        if name.utf8.first == UInt8(ascii: "#") { bytes.append(backslash) }
        escape(name, inMeasurement, to: &bytes)
    }

    /// Returns a text as the value of a field.
    public static func quoted(_ text: String) -> String {
        let bytes = text.utf8.flatMap { byte in
            byte == UInt8(ascii: "\"") || byte == backslash ? [backslash, byte] : [byte]
        }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }
}
