/// One entry as a line of octets.
struct LogLine {
    private let form: LogForm

    init(_ form: LogForm) {
        self.form = form
    }

    /// The line, with its newline; control characters in values cannot break it.
    func octets(_ entry: LogEntry, time: String, suppressed: Int) -> [UInt8] {
        var fields = entry.fields
        if suppressed > 0 { fields.append(LogField("suppressed", suppressed)) }
        let line =
            switch form {
            case .text(let hasColour): text(entry, fields, time: time, hasColour: hasColour)
            case .journald: "<\(entry.level.syslog)>\(entry.message)\(pairs(fields))"
            case .json: json(entry, fields, time: time)
            }
        return Array(line.utf8) + [UInt8(ascii: "\n")]
    }

    private func text(_ entry: LogEntry, _ fields: [LogField], time: String, hasColour: Bool) -> String {
        let level = "\(entry.level)"
        let padded = level + String(repeating: " ", count: 7 - level.count)
        let mark = hasColour ? "\u{1B}[\(entry.level.colour)m\(padded)\u{1B}[0m" : padded
        return "\(time) \(mark) \(entry.message)\(pairs(fields))"
    }

    private func pairs(_ fields: [LogField]) -> String {
        fields.map { field in
            let isPlain = field.value.utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 != 0x7F }
            return isPlain && !field.value.isEmpty
                ? " \(field.key)=\(field.value)" : " \(field.key)=\(quoted(field.value))"
        }.joined()
    }

    private func json(_ entry: LogEntry, _ fields: [LogField], time: String) -> String {
        let members = fields.map { ",\(quoted($0.key)):\(quoted($0.value))" }.joined()
        return "{\"time\":\(quoted(time)),\"level\":\"\(entry.level)\",\"message\":\(quoted(entry.message))\(members)}"
    }

    private func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension LogLevel {
    /// The severity of RFC 5424.
    var syslog: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        }
    }

    /// The number of an ANSI colour.
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
