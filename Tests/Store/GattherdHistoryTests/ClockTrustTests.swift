import Testing

@testable import GattherdHistory

/// Times are seconds after ``start``, the wall clock's at the machine's start.
@Suite struct ClockTrustTests {
    private static let start: Int64 = 1_800_000_000
    private static let day: Int64 = 86_400

    private static func reading(_ wall: Int64, _ uptime: Int64, synchronised: Bool = true) -> ClockReading {
        ClockReading(
            wall: (start + wall) * 1_000_000,
            uptime: uptime * 1_000_000,
            isSynchronised: synchronised
        )
    }

    /// A clock that has been right for 1000 s.
    private var trusted: ClockTrust {
        var trust = ClockTrust(Self.reading(0, 0), boot: "a", saved: nil, earliest: 0, isEmpty: true)
        trust.observe(Self.reading(1000, 1000))
        return trust
    }

    private func reopened(_ mark: ClockMark, _ reading: ClockReading, boot: String = "a") -> ClockTrust {
        ClockTrust(reading, boot: boot, saved: mark, earliest: Self.start * 1_000_000, isEmpty: false)
    }

    /// Checks the clock once a minute, as a running daemon does.
    private func run(_ trust: inout ClockTrust, lead: Int64, _ seconds: Range<Int64>, synchronised: Bool = true) {
        for uptime in stride(from: seconds.lowerBound, through: seconds.upperBound, by: 60) {
            trust.observe(Self.reading(uptime + lead, uptime, synchronised: synchronised))
        }
    }

    private static func seconds(_ time: Int64) -> Int64 { time / 1_000_000 - start }

    @Test func `a clock that runs without steps, or with small ones, is trusted`() {
        var trust = trusted
        for (wall, uptime) in [(2000, 2000), (2050, 2000), (1950, 2000), (90_060, 90_000)] as [(Int64, Int64)] {
            trust.observe(Self.reading(wall, uptime))
            #expect(trust.isTrusted)
            #expect(trust.proven(Self.reading(wall, uptime)) == (Self.start + wall) * 1_000_000)
        }
    }

    @Test(arguments: [true, false])
    func `restarts of the daemon do not make a clock step trusted`(isSynchronised: Bool) {
        var mark = trusted.mark
        for uptime in stride(from: 1010 as Int64, through: 4000, by: 100) {
            let now = Self.reading(400 * Self.day + uptime, uptime, synchronised: isSynchronised)
            let trust = reopened(mark, now)
            #expect(trust.claimed(now) == nil)
            #expect(Self.seconds(trust.proven(now)) == uptime)
            #expect(trust.doubt(now) != nil)
            mark = trust.mark
        }
    }

    @Test func `a step ahead is accepted after an hour of synchronisation, at first with a limit`() {
        var trust = trusted
        let lead = 400 * Self.day
        run(&trust, lead: lead, 1060..<4600)
        #expect(trust.claimed(Self.reading(4600 + lead, 4600)) == nil)
        run(&trust, lead: lead, 4660..<4720)
        let now = Self.reading(4720 + lead, 4720)
        #expect(trust.claimed(now) == now.wall)
        #expect(Self.seconds(trust.proven(now)) == 4720)
        trust.recordCaughtUp(now)
        #expect(trust.isTrusted && trust.proven(now) == now.wall)
    }

    @Test func `an unsynchronised clock is accepted after seven days without a step`() {
        var trust = trusted
        let lead = 400 * Self.day
        run(&trust, lead: lead, 1060..<(7 * Self.day), synchronised: false)
        #expect(!trust.isTrusted && trust.mark.phase == .waiting)
        run(&trust, lead: lead, (7 * Self.day)..<(7 * Self.day + 2000), synchronised: false)
        #expect(trust.mark.phase == .limited)
    }

    @Test func `a clock that returns is trusted at once`() {
        for length in [600, 5000] as [Int64] {
            var trust = trusted
            run(&trust, lead: 400 * Self.day, 1060..<(1060 + length))
            trust.observe(Self.reading(1120 + length, 1120 + length))
            #expect(trust.isTrusted)
        }
    }

    @Test func `a clock that steps back deletes by its own time and is trusted after an hour`() {
        var trust = trusted
        run(&trust, lead: -Self.day, 1060..<1120)
        #expect(!trust.isTrusted)
        #expect(Self.seconds(trust.proven(Self.reading(1120 - Self.day, 1120))) == 1120 - Self.day)
        run(&trust, lead: -Self.day, 1180..<4800)
        #expect(trust.isTrusted)
    }

    @Test func `after a reboot only the uptime is proven`() {
        let now = Self.reading(400 * Self.day, 20)
        var trust = reopened(trusted.mark, now, boot: "b")
        #expect(Self.seconds(trust.proven(now)) == 1020)
        run(&trust, lead: 400 * Self.day, 20..<3700)
        #expect(trust.mark.phase == .limited)
        let soon = Self.reading(1130, 20)
        trust = reopened(trusted.mark, soon, boot: "b")
        run(&trust, lead: 1110, 20..<200)
        #expect(trust.mark.phase == .limited)
    }

    @Test func `a clock in 1970 is never trusted`() {
        var trust = reopened(trusted.mark, Self.reading(20 - Self.start, 20, synchronised: false), boot: "b")
        run(&trust, lead: -Self.start, 60..<(30 * Self.day), synchronised: false)
        #expect(!trust.isTrusted)
        let now = Self.reading(30 * Self.day - Self.start, 30 * Self.day, synchronised: false)
        #expect(trust.proven(now) == now.wall)
    }

    @Test func `an uptime that jumps while no daemon runs proves nothing`() {
        let now = Self.reading(400 * Self.day + 1000, 400 * Self.day + 1000)
        let trust = reopened(trusted.mark, now)
        #expect(!trust.isTrusted && trust.claimed(now) == nil)
        #expect(Self.seconds(trust.proven(now)) == 1000)
    }

    @Test func `a file that was never synchronised does not trust the first synchronisation of another start`() {
        let first = Self.reading(0, 10, synchronised: false)
        let mark = ClockTrust(first, boot: "a", saved: nil, earliest: 0, isEmpty: true).mark
        #expect(mark.isFresh && mark.base == nil)
        let now = Self.reading(400 * Self.day, 20)
        let trust = reopened(mark, now, boot: "b")
        #expect(!trust.isTrusted && trust.proven(now) == .min && trust.claimed(now) == nil)
    }

    @Test func `a clock that is synchronised after the first sample is trusted after an hour`() {
        let first = Self.reading(0, 10, synchronised: false)
        var trust = ClockTrust(first, boot: "a", saved: nil, earliest: 0, isEmpty: true)
        trust.isFileEmpty = false
        run(&trust, lead: 0, 60..<600)
        #expect(!trust.isTrusted && trust.doubt(Self.reading(600, 600)) == nil)
        run(&trust, lead: 0, 660..<4000)
        #expect(trust.mark.phase == .limited)
    }

    @Test func `a file without a clock mark deletes nothing at first`() {
        var trust = ClockTrust(Self.reading(10, 10), boot: "a", saved: nil, earliest: 0, isEmpty: false)
        #expect(!trust.isTrusted && trust.proven(Self.reading(10, 10)) == .min)
        run(&trust, lead: 0, 60..<3700)
        #expect(trust.mark.phase == .limited)
    }
}
