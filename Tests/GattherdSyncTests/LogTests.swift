import FoundationEssentials
import Testing

@testable import GattherdLog

@Suite struct LogTests {
    private let entry = LogEntry(
        level: .warning,
        message: "link failed",
        fields: [LogField("device", "strap"), LogField("fault", "a \"b\"\n\u{1B}[31m"), LogField("empty", "")]
    )

    private func line(_ form: LogForm, _ entry: LogEntry, suppressed: Int = 0) -> String {
        let octets = LogLine(form).octets(entry, time: "2026-11-21T03:20:05.123456Z", suppressed: suppressed)
        return String(decoding: octets, as: UTF8.self)
    }

    @Test func `Text has time, level, message and fields; nothing in a value can end the line or colour it`() {
        #expect(
            line(.text(hasColour: false), entry)
                == "2026-11-21T03:20:05.123456Z warning link failed device=strap fault=\"a \\\"b\\\"\\n\\u001b[31m\" empty=\"\"\n"
        )
        #expect(
            line(.text(hasColour: true), entry).hasPrefix("2026-11-21T03:20:05.123456Z \u{1B}[33mwarning\u{1B}[0m link")
        )
    }

    @Test func `The journal's form begins with the severity and has no time`() {
        #expect(line(.journald, entry).hasPrefix("<4>link failed device=strap"))
    }

    @Test(arguments: [
        (LogLevel.error, 3), (.warning, 4), (.notice, 5), (.info, 6), (.debug, 7), (.trace, 7),
    ])
    func `Each level has a severity of RFC 5424`(level: LogLevel, severity: Int) {
        #expect(line(.journald, LogEntry(level: level, message: "m", fields: [])) == "<\(severity)>m\n")
    }

    @Test func `JSON is one object that reads back`() throws {
        let text = line(.json, entry, suppressed: 7)
        #expect(text.hasSuffix("}\n") && text.filter { $0 == "\n" }.count == 1)
        let object = try JSONDecoder().decode([String: String].self, from: Data(text.utf8))
        #expect(
            object == [
                "time": "2026-11-21T03:20:05.123456Z", "level": "warning", "message": "link failed", "device": "strap",
                "fault": "a \"b\"\n\u{1B}[31m", "empty": "", "suppressed": "7",
            ]
        )
    }

    @Test func `Below the threshold nothing is written, and the fields are not built`() {
        let log = Log(threshold: .info) { _ in Issue.record("written") }
        func fields() -> [LogField] {
            Issue.record("built")
            return []
        }
        log(.debug, "quiet", fields())
    }

    @Test func `One cause writes at most ten lines a minute, and the next line says how many were left out`() {
        var limit = RepeatLimit()
        let verdicts = (0..<100).map { limit.judge(entry, at: .seconds($0 / 10)) }
        #expect(verdicts.filter { $0 == .write(suppressed: 0) }.count == 10)
        #expect(verdicts.filter { $0 == .suppress }.count == 90)
        #expect(limit.judge(entry, at: .seconds(61)) == .write(suppressed: 90))
        #expect(limit.judge(entry, at: .seconds(61)) == .write(suppressed: 0))
    }

    @Test func `Another device or message is another cause, and debug is not limited`() {
        var limit = RepeatLimit()
        for _ in 0..<20 { _ = limit.judge(entry, at: .zero) }
        #expect(limit.judge(entry, at: .zero) == .suppress)
        let other = LogEntry(level: .warning, message: "link failed", fields: [LogField("device", "dial")])
        #expect(limit.judge(other, at: .zero) == .write(suppressed: 0))
        #expect(
            limit.judge(LogEntry(level: .warning, message: "x", fields: entry.fields), at: .zero)
                == .write(suppressed: 0)
        )
        let debug = LogEntry(level: .debug, message: "link failed", fields: entry.fields)
        #expect(limit.judge(debug, at: .zero) == .write(suppressed: 0))
    }
}
