/// The format of a log line.
struct LogLine {
    private let form: LogFormat

    init(_ form: LogFormat) {
        self.form = form
    }

    /// Returns the line with its newline.
    ///
    /// Control characters in values are escaped.
    func bytes(_ entry: LogEntry, time: String) -> [UInt8] {
        let line =
            switch form {
            case .text(let hasColour): text(entry, time: time, hasColour: hasColour)
            case .journald: "<\(entry.level.syslog)>\(Self.sentence(entry))"
            case .json: json(entry, time: time)
            }
        return Array(line.utf8) + [UInt8(ascii: "\n")]
    }

    /// Returns message and fields in one line.
    static func sentence(_ entry: LogEntry) -> String {
        entry.message + pairs(entry.fields)
    }

    private func text(_ entry: LogEntry, time: String, hasColour: Bool) -> String {
        let level = "\(entry.level)"
        let padded = level + String(repeating: " ", count: 7 - level.count)
        let mark = hasColour ? "\u{1B}[\(entry.level.colour)m\(padded)\u{1B}[0m" : padded
        return "\(time) \(mark) \(Self.sentence(entry))"
    }

    private static func pairs(_ fields: [LogField]) -> String {
        fields.map { field in
            let isPlain = field.value.unicodeScalars.allSatisfy { $0 > " " && $0 != "\"" && !$0.needsEscape }
            return isPlain && !field.value.isEmpty
                ? " \(field.key)=\(field.value)" : " \(field.key)=\(quoted(field.value))"
        }.joined()
    }

    private func json(_ entry: LogEntry, time: String) -> String {
        let members = entry.fields.map { field in
            ",\(Self.quoted(field.key)):\(field.isNumber ? field.value : Self.quoted(field.value))"
        }
        let message = Self.quoted(entry.message)
        return "{\"time\":\(Self.quoted(time)),\"level\":\"\(entry.level)\",\"message\":\(message)\(members.joined())}"
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case _ where scalar.needsEscape:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension Unicode.Scalar {
    /// True for line breaks, control characters and bidirectional controls.
    ///
    /// All have at most four hexadecimal digits.
    fileprivate var needsEscape: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

extension LogLevel {
    /// The severity of RFC 5424, as syslog and journald use it.
    var syslog: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        }
    }

    /// The ANSI colour code.
    var colour: Int {
        switch self {
        case .trace, .debug: 90
        case .info: 32
        case .notice: 36
        case .warning: 33
        case .error: 31
        }
    }
}

/// A log entry as journald fields, for `sd_journal_sendv`.
///
/// `MESSAGE` is the whole line. Each field is a journald field as well, so that
/// `journalctl GATTHERD_DEVICE=strap` finds it.
public struct JournaldRecord: Hashable, Sendable {
    /// The fields as bytes, `NAME=value` each; a value may contain any bytes.
    public let fields: [[UInt8]]

    /// - Parameters:
    ///   - entry: The log entry.
    ///   - time: The time of the entry; journald records the time of writing.
    public init(_ entry: LogEntry, time: String) {
        let fixed = [
            "MESSAGE=" + LogLine.sentence(entry), "PRIORITY=\(entry.level.syslog)", "SYSLOG_IDENTIFIER=gattherd",
            "GATTHERD_LEVEL=\(entry.level)", "GATTHERD_EVENT=" + entry.message, "GATTHERD_TIME=" + time,
        ]
        fields = (fixed + entry.fields.map { "GATTHERD_\(Self.name($0.key))=\($0.value)" }).map { Array($0.utf8) }
    }

    /// Returns a valid name of a journald field: capital letters, digits and underscores.
    private static func name(_ key: String) -> String {
        String(key.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }
}
