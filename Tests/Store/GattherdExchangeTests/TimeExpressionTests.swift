import GattherdExchange
import GattherdModel
import Testing

@Suite struct TimeExpressionTests {
    private static let now = "2026-11-21T03:20:05.123456Z"

    private func instant(_ text: String) throws -> String? {
        let now = try #require(Timestamp(rfc3339: Self.now.utf8))
        return TimeExpression.instant(text, now: now)?.rfc3339
    }

    @Test(
        arguments: [
            ("now", now),
            ("1h", "2026-11-21T02:20:05.123456Z"),
            ("30m ago", "2026-11-21T02:50:05.123456Z"),
            ("1d12h", "2026-11-19T15:20:05.123456Z"),
            ("1.5s", "2026-11-21T03:20:03.623456Z"),
            ("today", "2026-11-21T00:00:00.000000Z"),
            ("yesterday", "2026-11-20T00:00:00.000000Z"),
            ("2026-11-20", "2026-11-20T00:00:00.000000Z"),
            ("2026-11-20 03:20", "2026-11-20T03:20:00.000000Z"),
            ("2026-11-20T03:20:05", "2026-11-20T03:20:05.000000Z"),
            ("2026-11-20T03:20:05.5+01:00", "2026-11-20T02:20:05.500000Z"),
        ]
    )
    func `common forms of a time are parsed as UTC`(text: String, expected: String) throws {
        #expect(try instant(text) == expected)
    }

    @Test(
        arguments: [
            "", "1", "h", "1h ", "0s", "-1h", "1h30", "tomorrow", "ago", " ago", "2026-11", "2026-02-30", "1hh", "٣h",
        ]
    )
    func `a malformed time is rejected`(text: String) throws {
        #expect(try instant(text) == nil)
    }

    @Test func `days before 1970 begin at midnight too`() throws {
        let now = try #require(Timestamp(rfc3339: "1969-12-31T23:00:00Z".utf8))
        #expect(TimeExpression.instant("today", now: now)?.rfc3339 == "1969-12-31T00:00:00.000000Z")
    }

    @Test(arguments: [("1h30m", 5400), ("90s", 90), ("1w", 604_800)])
    func `a length of time may have several parts`(text: String, seconds: Int) {
        #expect(TimeExpression.duration(text) == .seconds(seconds))
    }
}
