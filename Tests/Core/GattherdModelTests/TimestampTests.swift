import GattherdModel
import Testing

@Suite struct TimestampTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1, "1970-01-01T00:00:00.000001Z"),
            (1_795_231_205_123_456, "2026-11-21T03:20:05.123456Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (-86_400_000_000, "1969-12-31T00:00:00.000000Z"),
            (-62_135_596_800_000_000, "0001-01-01T00:00:00.000000Z"),
            (-62_167_219_200_000_000, "0000-01-01T00:00:00.000000Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (951_868_799_999_999, "2000-02-29T23:59:59.999999Z"),
            (951_868_800_000_000, "2000-03-01T00:00:00.000000Z"),
            (1_709_164_800_000_000, "2024-02-29T00:00:00.000000Z"),
            (4_107_542_399_999_999, "2100-02-28T23:59:59.999999Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
            (1_798_761_599_000_000, "2026-12-31T23:59:59.000000Z"),
            (1_798_761_600_000_000, "2027-01-01T00:00:00.000000Z"),
        ]
    )
    func `instants are written as RFC 3339 in UTC with six decimals`(microseconds: Int64, expected: String) {
        #expect(Timestamp(microseconds: microseconds).rfc3339 == expected)
    }

    @Test func `instants beyond RFC 3339 are clamped`() {
        #expect(Timestamp(microseconds: .max).rfc3339 == "9999-12-31T23:59:59.999999Z")
        #expect(Timestamp(microseconds: .min).rfc3339 == "0000-01-01T00:00:00.000000Z")
    }

    @Test func `written instants are read back`() {
        for microseconds in [0, -1, 1_798_761_600_123_456, -62_167_219_200_000_000, 253_402_300_799_999_999] as [Int64]
        {
            let instant = Timestamp(microseconds: microseconds)
            #expect(Timestamp(rfc3339: instant.rfc3339Bytes) == instant)
        }
        for number in 0..<3000 as Range<Int64> {
            let instant = Timestamp(microseconds: (number - 1000) * 86_400_000_000 * 97)
            #expect(Timestamp(rfc3339: instant.rfc3339Bytes) == instant)
        }
    }

    @Test(
        arguments: [
            ("2026-11-21T03:20:05Z", "2026-11-21T03:20:05.000000Z"),
            ("2026-11-21t03:20:05z", "2026-11-21T03:20:05.000000Z"),
            ("2026-11-21 03:20:05.1Z", "2026-11-21T03:20:05.100000Z"),
            ("2026-11-21T03:20:05.123456999Z", "2026-11-21T03:20:05.123456Z"),
            ("2026-11-21T00:20:05.5+05:30", "2026-11-20T18:50:05.500000Z"),
            ("2026-12-31T23:59:59-00:01", "2027-01-01T00:00:59.000000Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000000Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"),
        ]
    )
    func `any offset, any number of decimals and a leap second are parsed`(text: String, instant: String) {
        #expect(Timestamp(rfc3339: text.utf8)?.rfc3339 == instant)
    }

    @Test(
        arguments: [
            "", "2026-11-21", "2026-11-21T03:20:05", "2026-11-21T03:20:05.123456+", "2026-13-21T03:20:05Z",
            "2026-00-21T03:20:05Z", "2026-11-00T03:20:05Z", "2026-11-31T03:20:05Z", "2025-02-29T03:20:05Z",
            "2026-11-21T24:20:05Z", "2026-11-21T03:60:05Z", "2026-11-21T03:20:61Z", "2026-11-21T03:20:05.Z",
            "2026-11-21T03:20:05Zulu", "2026-11-21T03:20:05+0100", "２026-11-21T03:20:05Z", "-026-11-21T03:20:05Z",
        ]
    )
    func `invalid instants give nil`(text: String) {
        #expect(Timestamp(rfc3339: text.utf8) == nil)
    }

    @Test func `the days of 800 years follow the calendar`() {
        var (year, month, day) = (1600, 1, 1)
        let firstDay = -135_140
        for number in firstDay..<(firstDay + 2 * 146_097) {
            let text = Timestamp(microseconds: Int64(number) * 86_400_000_000).rfc3339
            guard text.prefix(10) == "\(year)-\(padded(month))-\(padded(day))" else {
                Issue.record("day \(number) is \(text), not \(year)-\(month)-\(day)")
                return
            }
            day += 1
            if day > length(of: month, in: year) { (month, day) = (month + 1, 1) }
            if month > 12 { (year, month) = (year + 1, 1) }
        }
    }

    private func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private func length(of month: Int, in year: Int) -> Int {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    }

    @Test(
        arguments: [
            (0, Duration.milliseconds(1500), 1_500_000),
            (0, .microseconds(-1), -1),
            (5, .nanoseconds(999), 5),
            (.max, .microseconds(1), .max),
            (.min, .microseconds(-1), .min),
            (0, .seconds(Int64.max), .max),
            (0, .seconds(-Int64.max), .min),
        ]
    )
    func `advancing keeps microseconds and is clamped`(start: Int64, by duration: Duration, end: Int64) {
        #expect(Timestamp(microseconds: start).advanced(by: duration) == Timestamp(microseconds: end))
    }

    @Test(
        arguments: [(0, 60, 0), (59, 60, 0), (60, 60, 60), (-1, 60, -60), (-60, 60, -60), (7, 0, 7)]
    )
    func `rounding goes down, before 1970 too`(microseconds: Int64, step: Int64, expected: Int64) {
        #expect(Timestamp(microseconds: microseconds).rounded(downTo: step) == Timestamp(microseconds: expected))
    }
}
