import GattherdModel
import Testing

@Suite struct OutputTests {
    private static let now = Timestamp(microseconds: 1_795_230_000_000_000)

    private struct FakeOutput: Output {
        let name = "influx"
        var status = OutputStatus(target: "http://i:8086")

        func run() async {}
        func roundTrip() async {}
        func stop(within limit: Duration) async {}
    }

    private static func summary(_ change: (inout OutputStatus) -> Void) -> DaemonStatus.Output {
        var output = FakeOutput()
        change(&output.status)
        return output.summary(at: now)
    }

    @Test func `the summary has all that people need to know`() {
        let summary = Self.summary { status in
            (status.state, status.problem) = (.waiting, "connection refused")
            (status.backlog, status.waitingSince) = (7, Self.now.advanced(by: .milliseconds(-61_250)))
            (status.delivered, status.skipped, status.errors) = (5, 6, 8)
            status.nextTry = Self.now.advanced(by: .seconds(4))
        }
        var expected = DaemonStatus.Output("influx", kind: "influx", state: .waiting, target: "http://i:8086")
        (expected.backlog, expected.lag, expected.error) = (7, 61.25, "connection refused")
        (expected.delivered, expected.skipped, expected.errors) = (5, 6, 8)
        expected.nextTry = "2026-11-21T03:00:04.000000Z"
        #expect(summary == expected)
    }

    @Test(arguments: [
        (Int64(0), Duration?.some(.seconds(-5)), Double?.some(0)), (1, nil, nil), (1, .seconds(-5), 5),
        // The clock was set back.
        (1, .seconds(5), 0),
    ])
    func `the lag is the age of the oldest waiting entry`(backlog: Int64, since: Duration?, lag: Double?) {
        let summary = Self.summary { status in
            status.backlog = backlog
            status.waitingSince = since.map { Self.now.advanced(by: $0) }
        }
        #expect(summary.lag.map { $0.rounded(.down) } == lag)
    }

    @Test(arguments: [
        (OutputStatus.State.idle, true), (.connecting, false), (.connected, true), (.waiting, false),
        (.stopping, false), (.stopped, false),
    ])
    func `an output is up while it can deliver`(state: OutputStatus.State, isUp: Bool) {
        #expect(DaemonStatus.Output("mqtt", state: state, target: "mqtt://b:1883").isUp == isUp)
    }

    @Test func `the problem names the error of an output that is down, or the delay of one that is behind`() {
        var output = DaemonStatus.Output("mqtt", state: .connecting, target: "mqtt://b:1883")
        #expect(output.problem == "connecting")
        output.error = "connection refused"
        #expect(output.problem == "connection refused")
        output.state = "connected"
        #expect(output.problem == nil)
        (output.lag, output.backlog) = (120.5, 9)
        #expect(output.problem == "120 s behind, with a backlog of 9: connection refused")
        output.lag = nil
        #expect(output.problem == nil)
    }
}
