import GattherdHistory
import GattherdModel
import Testing

@testable import GattherdExchange

@Suite struct SampleExchangeTests {
    private static let time = Timestamp(microseconds: 1_795_231_205_123_456)  // 2026-11-21T03:20:05.123456Z
    static let values: [SampleValue] = [
        .integer(.min), .integer(.max), .integer(0), .real(0.1), .real(72), .real(-0.0), .real(1e300),
        .real(.leastNonzeroMagnitude), .text(""), .text("a \"b\" \\ c, d=e"), .text("two\nlines"), .text("äöü 🫀"),
        .text("ends with \\"), .text("two\r\nlines\r\n"), .text("\r"),
    ]

    private func series(
        _ metric: String = "heart_rate",
        device: String = "strap",
        unit: String? = "bpm",
        isRepeated: Bool = false
    ) -> HistorySeries {
        HistorySeries(
            device: device,
            profile: "heart-rate",
            stream: "heart_rate",
            metric: metric,
            unit: unit,
            source: "notify",
            kind: .counter,
            isRepeated: isRepeated
        )
    }

    private func written(_ rows: [HistoryRow], _ format: ExchangeFormat) -> String {
        var writer = SampleWriter(format)
        for row in rows { _ = writer.write(row) }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private func read(_ text: String, _ format: ExchangeFormat, precision: TimePrecision = .ns) throws -> [HistoryRow] {
        var reader = SampleReader(format, precision: precision)
        var rows: [HistoryRow] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            rows += try reader.rows(of: Array(line.utf8)[...])
        }
        try reader.finish()
        return rows
    }

    private func explanation(_ line: String, _ format: ExchangeFormat) -> String? {
        var reader = SampleReader(format)
        do throws(ExchangeError) {
            _ = try reader.rows(of: Array(line.utf8)[...])
            return nil
        } catch {
            return error.description
        }
    }

    @Test(arguments: values, ExchangeFormat.allCases)
    func `exported samples are imported exactly`(value: SampleValue, format: ExchangeFormat) throws {
        let series = series("a, b=c", unit: "m s =")
        let row = HistoryRow(seq: 7, time: Self.time, series: series, value: value)
        let found = try #require(try read(written([row], format), format).first)
        #expect(found.time == Self.time && found.value == value)
        #expect(found.series.device == "strap" && found.series.profile == "heart-rate")
        #expect(found.series.stream == "heart_rate" && found.series.metric == series.metric)
        #expect(found.series.unit == series.unit && found.series.source == "notify" && found.series.kind == .counter)
        if format == .json { #expect(found.seq == 7) }
    }

    @Test(arguments: [
        (#"{"ts":0,"device":"d","metric":"a\u0000b","unit":"\u0000","value":"12\u000045"}"#, ExchangeFormat.json),
        ("m,device=d,unit=\0 a\0b=\"12\0\u{34}5\" 0", .line),
    ])
    func `a NUL in imported text becomes the replacement character`(line: String, format: ExchangeFormat) throws {
        let row = try #require(try read(line, format).first)
        #expect(row.value == .text("12\u{FFFD}45"))
        #expect(row.series.metric == "a\u{FFFD}b" && row.series.unit == "\u{FFFD}")
    }

    @Test func `JSON keeps every name; names in points have nothing that servers read differently`() throws {
        let row = HistoryRow(seq: 7, time: Self.time, series: series("a\\b\\", unit: "\"\\,\t"), value: .integer(1))
        let found = try #require(try read(written([row], .json), .json).first)
        #expect(found.series.metric == "a\\b\\" && found.series.unit == "\"\\,\t")
        #expect(written([row], .line).hasPrefix("a/b/,device=strap,"))
        #expect(written([row], .line).contains(#",unit='/\,\  value="#))
    }

    @Test(
        arguments: ["# no comment", "#", " #", "a#b"],
        ExchangeFormat.allCases
    )
    func `a metric may have any name`(metric: String, format: ExchangeFormat) throws {
        let row = HistoryRow(seq: 7, time: Self.time, series: series(metric), value: .integer(1))
        #expect(try read(written([row], format), format).map(\.series.metric) == [metric])
    }

    @Test(
        arguments: [Int64.min, .max, 253_402_300_800_000_000, -62_167_219_200_000_001]
    )
    func `a time that cannot be written as RFC 3339 is refused`(time: Int64) throws {
        let line = { (time: Int64) in #"{"ts":\#(time),"device":"d","metric":"m","value":1}"# }
        let start = "the time is \(time) µs since 1970; it must be from 0000-01-01T00:00:00.000000Z to 9999-12-31"
        #expect(explanation(line(time), .json)?.hasPrefix(start) == true)
        for time in [253_402_300_799_999_999, -62_167_219_200_000_000] as [Int64] {
            #expect(explanation(line(time), .json) == nil)
        }
    }

    @Test func `a JSON line has all members; a point has one tag per element`() {
        let repeated = series("rr_interval", unit: nil, isRepeated: true)
        let rows = [0.5, 0.5].map { HistoryRow(seq: 7, time: Self.time, series: repeated, value: .real($0)) }
        let next = HistoryRow(seq: 8, time: Self.time, series: repeated, value: .real(1))
        #expect(
            written([rows[0]], .json) == #"{"time":"2026-11-21T03:20:05.123456Z","seq":7,"device":"strap","#
                + #""profile":"heart-rate","stream":"heart_rate","metric":"rr_interval","value":0.5,"unit":null,"#
                + #""source":"notify","kind":"counter","repeated":true}"# + "\n"
        )
        let point = { (element: Int, value: Double) in
            "rr_interval,device=strap,element=\(element),kind=counter,profile=heart-rate,source=notify,"
                + "stream=heart_rate value=\(value) 1795231205123456000\n"
        }
        #expect(written(rows + [next], .line) == point(0, 0.5) + point(1, 0.5) + point(0, 1))
    }

    @Test func `line protocol skips times that it cannot represent, and all others can be read`() throws {
        let (first, last) = (Int64.min / 1000, Int64.max / 1000)
        for microseconds in [first - 1, first, -1, 0, last, last + 1] {
            let time = Timestamp(microseconds: microseconds)
            var writer = SampleWriter(.line)
            let isWritten = writer.write(HistoryRow(seq: 7, time: time, series: series(), value: .integer(1)))
            #expect(isWritten == (first...last).contains(microseconds))
            let text = String(decoding: writer.bytes, as: UTF8.self)
            #expect(try read(text, .line).map(\.time) == (isWritten ? [time] : []))
        }
    }

    @Test func `line protocol skips unknown values and counts them`() throws {
        let row = HistoryRow(seq: 7, time: Self.time, series: series(), value: .null)
        var writer = SampleWriter(.line)
        let isWritten = writer.write(row)
        #expect(!isWritten)
        #expect(writer.bytes.isEmpty)
        #expect(try read(written([row], .json), .json).map(\.value) == [.null])
    }

    @Test(
        arguments: [
            ("t,device=d value=1i 1795231205123456000", "d t t import read 1 integer(1)"),
            ("m,device=d,room=x a=1,b=\"t,= t\",c=t 1795231205123456999  ", "d m a import read 3 real(1.0)"),
            ("  weather\\ box,device=d t=-1.5e3 1795231205123456000\r", "d weather box t import read 1 real(-1500.0)"),
            (#"a\\b,device=d value=1i 1795231205123456000"#, #"d a\\b a\\b import read 1 integer(1)"#),
            ("t,device=d,stream=s,profile=p,source=advert value=7u 1795231205123456000", "d s t p advert 1 integer(7)"),
        ]
    )
    func `points of other programs are read`(line: String, expected: String) throws {
        let rows = try read(line, .line)
        let row = try #require(rows.first)
        let series = row.series
        #expect(row.time == Self.time)
        #expect(
            """
            \(series.device) \(series.stream) \(series.metric) \(series.profile) \(series.source) \
            \(rows.count) \(row.value)
            """
                == expected
        )
    }

    @Test(
        arguments: zip(
            TimePrecision.allCases,
            [1_795_231_205_000_000_000, 1_795_231_205_000_000, 1_795_231_205_000, 1_795_231_205]
        )
    )
    func `times are read in the given precision`(precision: TimePrecision, number: Int64) throws {
        let rows = try read("t,device=d value=1 \(number)", .line, precision: precision)
        #expect(rows.map(\.time.rfc3339) == ["2026-11-21T03:20:05.000000Z"])
    }

    @Test func `times before 1970 are rounded down too`() throws {
        #expect(try read("t,device=d value=1 -1", .line).map(\.time.microseconds) == [-1])
    }

    @Test func `empty lines and comments are skipped`() throws {
        #expect(try read("# a comment\n\n   \n", .line).isEmpty)
        #expect(try read("\n  \n\r", .json).isEmpty)
    }

    @Test func `members in any order, escapes and both forms of a time are read`() throws {
        let rows = try read(
            #"{ "value" : "\u00e4\uD83E\uDEC0\/\n", "metric":"m","x":null, "device":"d","ts":1795231205123456 }"#
                + "\n" + #"{"time":"2026-11-21T04:20:05+01:00","device":"d","metric":"m","value":-1.5E2}"#,
            .json
        )
        #expect(rows.map(\.value) == [.text("ä🫀/\n"), .real(-150)])
        #expect(rows.map(\.time.rfc3339) == ["2026-11-21T03:20:05.123456Z", "2026-11-21T03:20:05.000000Z"])
        #expect(rows[0].series === rows[1].series)
        #expect(rows[0].series.profile == "import" && rows[0].series.stream == "m" && rows[0].series.source == "read")
    }

    @Test(
        arguments: [
            ("m,device=d value=1", "there is no time after the fields"),
            ("m,device=d value=1 soon", "'soon' is not a time in ns since 1970; choose --precision"),
            ("m value=1 1", "there is no device; name one for such lines by --device"),
            ("m,device=The\\ Attic value=1 1", "'The Attic' is not a name for a device; use 1 to 64 of a-z"),
            ("m,device value=1 1", "the tag 'device' has no value"),
            ("m,device=d 1", "there is no field; write name=value"),
            ("m,device=d value=warm 1", "the field 'value' has no value that can be read: 'warm'"),
            ("m,device=d value=0x10 1", "the field 'value' has no value that can be read"),
            ("m,device=d value=nan 1", "the field 'value' has no value that can be read"),
            ("m,device=d value=99999999999999999999i 1", "the field 'value' has no value that can be read"),
            ("m,device=d value=\"a\"b 1", "goes on after its quotation mark"),
            (",device=d value=1 1", "there is no measurement"),
            ("m,device=d,source=guess value=1 1", "'guess' is not a source; choose one of notify, indicate"),
        ]
    )
    func `an error names the fault of a line and its remedy`(line: String, start: String) {
        #expect(explanation(line, .line)?.contains(start) == true)
    }

    @Test(
        arguments: [
            ("time=1", "the line is not a JSON object"),
            ("{\"value\":1}", "there is no time; add \"time\" (RFC 3339) or \"ts\""),
            (#"{"ts":1,"device":"d","metric":"m"}"#, "there is no value; add \"value\""),
            (#"{"ts":1,"device":"d","value":1}"#, "there is no metric; add \"metric\""),
            (#"{"time":"yesterday"}"#, "\"time\" is not RFC 3339; write for example"),
            (#"{"ts":1.5}"#, "\"ts\" is not a whole number"),
            (#"{"device":1}"#, "\"device\" is not a text"),
            (#"{"value":[1,2]}"#, "\"value\" is nested; write a line for each sample"),
            (#"{"value":01}"#, "not JSON at byte 10: an object is not closed, or a comma is missing; write one"),
            (#"{"value":1"#, "an object is not closed, or a comma is missing"),
            (#"{"value":"#, "a value is missing"),
            (#"{"value":"a"#, "a string is not closed"),
            (#"{"value":"\uD800"}"#, "a surrogate has no partner"),
            (#"{"value":1e999}"#, "the number 1e999 is too large"),
            (#"{"value":1} {"value":2}"#, "unexpected text after the value; write one object per line"),
        ]
    )
    func badJSON(line: String, start: String) {
        #expect(explanation(line, .json)?.contains(start) == true)
    }

    @Test(arguments: ExchangeFormat.allCases)
    func `random input never makes the readers trap`(format: ExchangeFormat) {
        var random = SystemRandomNumberGenerator()
        let row = HistoryRow(
            seq: 7,
            time: Self.time,
            series: series(isRepeated: true),
            value: .text("a \"b\" \\")
        )
        let good = Array(written([row], format).utf8)
        for _ in 0..<5000 {
            var line = good
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<line.count, using: &random)
                switch UInt8.random(in: 0...2, using: &random) {
                case 0: line[place] = UInt8.random(in: 0...255, using: &random)
                case 1: line.removeSubrange(place...)
                default: line.insert(contentsOf: [0x22, 0x5C, 0x2C].shuffled(using: &random), at: place)
                }
                if line.isEmpty { line = [0] }
            }
            var reader = SampleReader(format)
            _ = try? reader.rows(of: line[...])
        }
    }

    @Test func `a missing quotation mark is reported soon, and at the end`() {
        var reader = SampleReader(.line)
        #expect(throws: Never.self) { try reader.rows(of: Array("m,device=d value=\"a".utf8)[...]) }
        #expect(throws: ExchangeError("the text that begins in this line does not end")) { try reader.finish() }
        #expect(throws: Never.self) { try reader.rows(of: Array("b".utf8)[...]) }
        #expect(throws: ExchangeError("the text that begins a line above does not end")) { try reader.finish() }
        let next = Array("m,device=d value=1 1".utf8)[...]
        #expect(throws: ExchangeError.self) { for _ in 0..<250 { _ = try reader.rows(of: next) } }
    }

    @Test func `a format is known by the file's name or its first line`() {
        #expect(ExchangeFormat(fileName: "a/b.jsonl") == .json)
        #expect(ExchangeFormat(fileName: "b.lp") == .line)
        #expect(ExchangeFormat(fileName: "b.txt") == nil)
        #expect(ExchangeFormat(firstLine: "  {\"a\":1}".utf8) == .json)
        #expect(ExchangeFormat(firstLine: "m,device=d value=1 1".utf8) == .line)
    }
}
