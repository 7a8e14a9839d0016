import FoundationEssentials
import GattherdSync
import Testing

@testable import GattherdLog

@Suite struct LogTests {
    private let entry = LogEntry(
        level: .warning,
        message: "link failed",
        fields: [LogField("device", "strap"), LogField("fault", "a \"b\"\n\u{1B}[31m"), LogField("empty", "")]
    )

    private func line(_ form: LogFormat, _ entry: LogEntry) -> String {
        let bytes = LogLine(form).bytes(entry, time: "2026-11-21T03:20:05.123456Z")
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `the text form has time, level, message and fields, and escapes values`() {
        #expect(
            line(.text(hasColour: false), entry)
                == "2026-11-21T03:20:05.123456Z warning link failed device=strap "
                + "fault=\"a \\\"b\\\"\\n\\u001b[31m\" empty=\"\"\n"
        )
        #expect(
            line(.text(hasColour: true), entry).hasPrefix("2026-11-21T03:20:05.123456Z \u{1B}[33mwarning\u{1B}[0m link")
        )
    }

    @Test func `a duration is written to the millisecond`() {
        #expect(LogField("pause", .milliseconds(1234) + .nanoseconds(567)).value == "1.234 seconds")
        #expect(LogField("pause", Duration(secondsComponent: .min, attosecondsComponent: 0)).value.hasSuffix("seconds"))
    }

    @Test func `the journald form has a severity and no time`() {
        #expect(line(.journald, entry).hasPrefix("<4>link failed device=strap"))
    }

    @Test(arguments: [
        (LogLevel.error, 3), (.warning, 4), (.notice, 5), (.info, 6), (.debug, 7), (.trace, 7),
    ])
    func `each level has a severity of RFC 5424`(level: LogLevel, severity: Int) {
        #expect(line(.journald, LogEntry(level: level, message: "m", fields: [])) == "<\(severity)>m\n")
    }

    @Test func `the JSON form is an object that can be decoded`() throws {
        let text = line(.json, entry)
        #expect(text.hasSuffix("}\n") && text.filter { $0 == "\n" }.count == 1)
        let object = try JSONDecoder().decode([String: String].self, from: Data(text.utf8))
        #expect(
            object == [
                "time": "2026-11-21T03:20:05.123456Z", "level": "warning", "message": "link failed", "device": "strap",
                "fault": "a \"b\"\n\u{1B}[31m", "empty": "",
            ]
        )
    }

    @Test func `entries below the threshold are not written, and their fields not built`() {
        let log = Log(threshold: .info) { _ in Issue.record("written") }
        func fields() -> [LogField] {
            Issue.record("built")
            return []
        }
        log(.debug, "quiet", fields())
    }

    @Test func `a new threshold applies to all derived logs`() {
        let lines = Locked<[String]>([])
        let log = Log(threshold: .warning) { entry in lines.withLock { $0.append(entry.message) } }
        let own = log.with(LogField("device", "strap"))
        own(.debug, "before")
        log.setThreshold(.debug)
        own(.debug, "between")
        log.setThreshold(.error)
        own(.debug, "after")
        #expect(lines.withLock { $0 } == ["between"])
    }

    @Test func `numbers are numbers in JSON`() {
        let entry = LogEntry(
            level: .info,
            message: "m",
            fields: [LogField("attempt", 3), LogField("rssi", Int8(-60)), LogField("device", "3")]
        )
        #expect(line(.json, entry).hasSuffix(#""message":"m","attempt":3,"rssi":-60,"device":"3"}\#n"#))
    }

    @Test(arguments: ["\u{9B}31m", "\u{7F}", "\u{202E}strap", "\u{2028}", "a\u{0}b"])
    func `control characters in values are escaped`(value: String) {
        let entry = LogEntry(level: .info, message: "m", fields: [LogField("name", value)])
        for form in [LogFormat.text(hasColour: false), .json, .journald] {
            let text = line(form, entry).dropLast().unicodeScalars
            #expect(
                text.allSatisfy {
                    !value.unicodeScalars.contains($0) || $0.isASCII && $0.value > 0x1F && $0 != "\u{7F}"
                }
            )
        }
    }

    @Test func `journald receives each field of an entry`() {
        let entry = LogEntry(
            level: .warning,
            message: "link failed",
            fields: [LogField("device", "strap"), LogField("history.error", "a\nb")]
        )
        let record = JournaldRecord(entry, time: "2026-11-21T03:20:05Z")
        let fields = record.fields.map { String(decoding: $0, as: UTF8.self) }
        #expect(
            fields == [
                #"MESSAGE=link failed device=strap history.error="a\nb""#, "PRIORITY=4", "SYSLOG_IDENTIFIER=gattherd",
                "GATTHERD_LEVEL=warning", "GATTHERD_EVENT=link failed", "GATTHERD_TIME=2026-11-21T03:20:05Z",
                "GATTHERD_DEVICE=strap", "GATTHERD_HISTORY_ERROR=a\nb",
            ]
        )
    }
}

@Suite struct RepeatLimitTests {
    private var limit = RepeatLimit()

    private static func entry(
        _ message: String = "link failed",
        _ device: String = "strap",
        _ level: LogLevel = .warning
    )
        -> LogEntry
    {
        LogEntry(level: level, message: message, fields: [LogField("device", device)])
    }

    /// The number of suppressed entries that an entry reports.
    private static func suppressed(_ entry: LogEntry) -> String? {
        entry.fields.first { $0.key == "suppressed" }?.value
    }

    @Test
    mutating func `ten entries of one cause pass in the first minute, then one a minute with a count`() {
        var passed: [LogEntry] = []
        for second in 0..<300 { passed += limit.filter(Self.entry(), at: .seconds(second)) }
        #expect(passed.count == 14)
        #expect(passed.suffix(5).map(Self.suppressed) == [nil, "50", "59", "59", "59"])
    }

    @Test mutating func `after a quiet minute ten entries pass again`() {
        for second in 0..<70 { _ = limit.filter(Self.entry(), at: .seconds(second)) }
        #expect(limit.filter(Self.entry(), at: .seconds(200)).map(Self.suppressed) == ["9"])
        let later = (0..<20).flatMap { limit.filter(Self.entry(), at: .seconds(300 + $0)) }
        #expect(later.count == 1)
        let calm = (0..<20).flatMap { limit.filter(Self.entry(), at: .seconds(1000 + $0 * 100)) }
        #expect(calm.count == 20)
    }

    @Test mutating func `suppressed entries are reported with the next entry of another cause`() {
        for _ in 0..<30 { _ = limit.filter(Self.entry(), at: .zero) }
        #expect(limit.filter(Self.entry("other"), at: .seconds(30)).count == 1)
        let reports = limit.filter(Self.entry("other"), at: .seconds(61))
        #expect(reports.map(\.message) == ["link failed", "other"])
        #expect(reports.first.map(Self.suppressed) == "20")
        #expect(reports.first?.fields.first == LogField("device", "strap"))
        #expect(limit.filter(Self.entry("other"), at: .seconds(62)).count == 1)
    }

    @Test mutating func `a report has the fields of the last suppressed entry`() {
        func failed(_ reason: String) -> LogEntry {
            let fields = [LogField("device", "strap"), LogField("reason", reason)]
            return LogEntry(level: .warning, message: "link failed", fields: fields)
        }
        for number in 0..<12 { _ = limit.filter(failed("\(number)"), at: .zero) }
        let report = limit.filter(Self.entry("other"), at: .seconds(61)).first
        #expect(report?.fields == failed("11").fields + [LogField("suppressed", 2)])
    }

    @Test mutating func `causes that repeat at the same time pass once a minute each`() {
        let entries = ["a", "b", "c"].map { Self.entry("link failed", $0) }
        var passed: [LogEntry] = []
        for second in 0..<300 {
            for entry in entries { passed += limit.filter(entry, at: .seconds(second)) }
        }
        for entry in entries { #expect(passed.count { $0.fields.first == entry.fields.first } == 14) }
    }

    @Test mutating func `after a report and a quiet minute ten entries pass again`() {
        for _ in 0..<30 { _ = limit.filter(Self.entry(), at: .zero) }
        #expect(limit.filter(Self.entry("other"), at: .seconds(61)).map(Self.suppressed) == ["20", nil])
        #expect((0..<20).flatMap { _ in limit.filter(Self.entry(), at: .seconds(130)) }.count == 10)
    }

    @Test mutating func `an entry that follows a late report passes`() {
        for _ in 0..<30 { _ = limit.filter(Self.entry(), at: .zero) }
        #expect(limit.filter(Self.entry("other"), at: .seconds(300)).map(Self.suppressed) == ["20", nil])
        #expect(limit.filter(Self.entry(), at: .seconds(301)).map(Self.suppressed) == [nil])
    }

    @Test mutating func `devices and messages are limited separately, debug entries are not limited`() {
        for _ in 0..<20 { _ = limit.filter(Self.entry(), at: .zero) }
        #expect(limit.filter(Self.entry(), at: .zero).isEmpty)
        #expect(limit.filter(Self.entry("link failed", "dial"), at: .zero).count == 1)
        #expect(limit.filter(Self.entry("x"), at: .zero).count == 1)
        #expect(limit.filter(Self.entry("link failed", "strap", .debug), at: .zero).count == 1)
    }

    @Test mutating func `files are limited separately, and suppressed entries name their file`() {
        func refused(_ path: String) -> LogEntry {
            LogEntry(level: .error, message: "profile refused", fields: [LogField("path", path)])
        }
        for _ in 0..<12 { _ = limit.filter(refused("a.so"), at: .zero) }
        #expect(limit.filter(refused("a.so"), at: .zero).isEmpty)
        #expect(limit.filter(refused("b.so"), at: .zero).count == 1)
        let reports = limit.filter(refused("b.so"), at: .seconds(61))
        #expect(reports.first?.fields.first == LogField("path", "a.so"))
        #expect(reports.first.map(Self.suppressed) == "3")
    }

    @Test mutating func `the number of remembered causes is bounded`() {
        for number in 0..<5000 { #expect(limit.filter(Self.entry("\(number)"), at: .seconds(number)).count == 1) }
        #expect(
            Mirror(reflecting: limit).children.compactMap { ($0.value as? any Collection)?.count }.max() ?? 0 <= 1001
        )
    }
}
