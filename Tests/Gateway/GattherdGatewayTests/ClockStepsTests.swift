import GattherdModel
import Testing

@testable import GattherdGateway

struct ClockStepsTests {
    private static let day: Int64 = 86_400
    private static let weeks = [7 * day, -7 * day]

    /// A time by the first clock, in seconds since the daemon's start.
    private static func time(_ seconds: Int64) -> Timestamp {
        Timestamp(microseconds: 1_700_000_000_000_000).advanced(by: .seconds(seconds))
    }

    /// The clocks of a daemon that started a minute after the machine; they stepped between 10 s and 30 s.
    private static func steps(by step: Int64) -> ClockSteps {
        var steps = ClockSteps(started: time(0), uptime: .seconds(60))
        steps.observe(time(10), uptime: .seconds(70))
        steps.observe(time(30 + step), uptime: .seconds(90))
        return steps
    }

    @Test(arguments: weeks)
    func `times from before a step become those of the new clock`(step: Int64) {
        let steps = Self.steps(by: step)
        for seconds: Int64 in [0, 5, 12] {
            #expect(steps.corrected(Self.time(seconds)) == Self.time(seconds + step))
        }
    }

    @Test(arguments: weeks)
    func `times after a step, and those of earlier runs, stay as they are`(step: Int64) {
        let steps = Self.steps(by: step)
        for time in [Self.time(20 + step), Self.time(30 + step), Self.time(-30 * Self.day)] {
            #expect(steps.corrected(time) == time)
        }
    }

    @Test func `several steps add up`() {
        var steps = Self.steps(by: 7 * Self.day)
        steps.observe(Self.time(50 - Self.day), uptime: .seconds(110))
        #expect(steps.corrected(Self.time(5)) == Self.time(5 - Self.day))
        #expect(steps.corrected(Self.time(25 + 7 * Self.day)) == Self.time(25 - Self.day))
    }

    @Test func `a clock that is slewed has no steps`() {
        var steps = ClockSteps(started: Self.time(0), uptime: .seconds(60))
        steps.observe(Self.time(30).advanced(by: .milliseconds(500)), uptime: .seconds(90))
        #expect(steps.corrected(Self.time(5)) == Self.time(5))
    }

    @Test(arguments: weeks + [0])
    func `the next attempt is as far ahead after a step as before`(step: Int64) throws {
        let history = DaemonStatus.History(at: "g.db", seq: 1)
        var status = DaemonStatus(version: "1", gateway: "lab", started: Self.time(0), history: history)
        var link = LinkStatus(device: "strap", state: .backingOff, since: Self.time(5))
        link.nextRetry = Self.time(305)
        var later = LinkStatus(device: "dial", state: .backingOff, since: Self.time(30 + step))
        later.nextRetry = Self.time(90 + step)
        status.devices = [link, later].map { DaemonStatus.Device($0, address: "C0:FF:EE:00:00:01", profiles: []) }
        status.correctTimes(Self.steps(by: step))
        #expect(status.devices.map(\.nextRetry) == [305, 90].map { Self.time($0 + step).rfc3339 })
    }

    @Test func `the times of a status are corrected`() throws {
        let history = DaemonStatus.History(at: "g.db", seq: 1)
        var status = DaemonStatus(version: "1", gateway: "lab", started: Self.time(0), history: history)
        let link = LinkStatus(device: "strap", state: .ready, since: Self.time(5))
        var device = DaemonStatus.Device(link, address: "C0:FF:EE:00:00:01", profiles: [])
        (device.lastHeard, device.lastReading) = (Self.time(6).rfc3339, Self.time(7).rfc3339)
        device.records = [.init(stream: "log", state: "complete", since: Self.time(9), done: 1, new: 1)]
        status.devices = [device]
        status.alerts = [ActiveAlert(alert: "warm", device: "strap", since: Self.time(8).rfc3339, detail: "")]
        status.correctTimes(Self.steps(by: Self.day))
        let corrected = try #require(status.devices.first)
        let times: [String?] = [
            status.started, corrected.since, corrected.lastHeard, corrected.lastReading, status.alerts?.first?.since,
            corrected.records?.first?.since,
        ]
        let expected: [String?] = [0, 5, 6, 7, 8, 9].map { Self.time($0 + Self.day).rfc3339 }
        #expect(times == expected)
    }
}
