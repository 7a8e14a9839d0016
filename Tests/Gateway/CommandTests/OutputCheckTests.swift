import GattherdModel
import Testing

@testable import gattherd

@Suite struct OutputCheckTests {
    private static let now = Timestamp(microseconds: 1_795_230_000_000_000)

    private static func output(_ state: OutputStatus.State) -> DaemonStatus.Output {
        DaemonStatus.Output("influx", state: state, target: "http://i:8086")
    }

    private static func gap(
        _ output: String = "influx",
        daysAgo days: Int = 0,
        after: Int64,
        through: Int64
    )
        -> LifecycleEvent
    {
        LifecycleEvent(
            time: now.advanced(by: .seconds(-86_400 * days)),
            kind: "output",
            [
                "output": .text(output), "state": .text("skipped"), "after": .integer(after),
                "through": .integer(through), "entries": .integer(through - after), "reason": .text("refused"),
            ]
        )
    }

    private static func findings(_ output: DaemonStatus.Output, _ events: [LifecycleEvent] = []) -> [DoctorFinding] {
        OutputCheck([output], events, now: now).findings
    }

    @Test func `an output that delivers is good`() {
        #expect(Self.findings(Self.output(.connected)) == [.good("output", "'influx' delivers to http://i:8086")])
    }

    @Test func `an output that fails is an error with cause, age and next try`() {
        var output = Self.output(.waiting)
        (output.backlog, output.lag, output.error) = (1, 61, "connection refused")
        output.nextTry = Self.now.advanced(by: .seconds(9)).rfc3339
        let finding = Self.findings(output).first
        #expect(finding?.severity == .error)
        #expect(
            finding?.text == "'influx' does not deliver to http://i:8086: connection refused; "
                + "1 entry waits, the oldest for 1m01s, next try in 9s"
        )
        #expect(finding?.remedy?.contains("the section 'influx'") == true)
    }

    @Test func `an output that is still connecting or behind is a warning`() {
        #expect(Self.findings(Self.output(.connecting)).map(\.severity) == [.warning])
        var output = Self.output(.connected)
        (output.backlog, output.lag) = (7, 121)
        #expect(Self.findings(output).map(\.severity) == [.warning])
        output.lag = 120
        #expect(Self.findings(output).map(\.severity) == [.good])
    }

    @Test func `a problem of a delivering output is a note`() {
        var output = Self.output(.connected)
        output.error = "refuses 'gattherd/lab/lamp/state'"
        #expect(Self.findings(output).map(\.severity) == [.note])
        #expect(Self.findings(output).first?.text.hasSuffix(": refuses 'gattherd/lab/lamp/state'") == true)
    }

    @Test func `gaps of the last seven days are counted for their output, and the last is described`() {
        let events = [
            Self.gap(daysAgo: 8, after: 0, through: 5), Self.gap(daysAgo: 2, after: 10, through: 20),
            Self.gap("mqtt", after: 20, through: 30), Self.gap(daysAgo: 1, after: 40, through: 41),
        ]
        let finding = Self.findings(Self.output(.connected), events).last
        #expect(finding?.severity == .warning)
        #expect(
            finding?.text
                == "'influx' skipped 11 entries in 2 gaps, the last at 2026-11-20T03:00:00.000000Z: seq 41: refused"
        )
        #expect(finding?.remedy?.hasSuffix("SELECT * FROM history WHERE seq > 40 AND seq <= 41") == true)
    }

    @Test func `single refused entries are gaps as well`() {
        let members: KeyValuePairs<String, SampleValue?> = [
            "output": .text("influx"), "state": .text("skipped"), "count": .integer(3), "seq": .integer(9),
            "device": .text("strap"), "error": .text("not a number"),
        ]
        let event = LifecycleEvent(time: Self.now, device: "strap", kind: "output", members)
        let finding = Self.findings(Self.output(.connected), [event]).last
        #expect(
            finding?.text
                == "'influx' skipped 3 entries at 2026-11-21T03:00:00.000000Z: the last with seq 9: not a number"
        )
        #expect(finding?.remedy?.hasSuffix("WHERE seq = 9") == true)
    }

    @Test func `events other than gaps are ignored`() {
        let events = ["{}", "[", #"{"output":"influx","state":"unavailable"}"#].map {
            LifecycleEvent(time: Self.now, device: nil, kind: "output", detail: $0)
        }
        #expect(Self.findings(Self.output(.connected), events).count == 1)
        #expect(
            OutputGap(
                LifecycleEvent(time: Self.now, device: nil, kind: "link", detail: #"{"output":"influx","through":1}"#)
            ) == nil
        )
    }

    @Test func `extreme numbers in an event do not trap`() {
        let events = [
            Self.gap(after: .max - 1, through: .max), Self.gap(after: .max, through: .max),
            LifecycleEvent(
                time: Self.now,
                kind: "output",
                [
                    "output": .text("influx"), "after": .integer(.min), "through": .integer(.max),
                    "entries": .integer(.max),
                ]
            ),
        ]
        #expect(Self.findings(Self.output(.connected), events + events).count == 2)
    }
}
