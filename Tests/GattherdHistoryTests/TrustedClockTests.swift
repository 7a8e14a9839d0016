import Testing

@testable import GattherdHistory

@Suite("TrustedClock")
struct TrustedClockTests {
    private let hour: Int64 = 3_600_000_000

    @Test("a clock that runs on, or is set back, or a little ahead, is believed")
    func ordinary() {
        var clock = TrustedClock()
        for (wall, steady) in [(0, 0), (hour, 3600), (-5 * hour, 3700), (-4 * hour, 7300), (-3 * hour - 1, 7400)] {
            #expect(clock.time(wall, steady: .seconds(steady)) == wall)
        }
    }

    @Test("a clock that jumps ahead is believed an hour later, if it is still there")
    func jump() {
        var clock = TrustedClock()
        _ = clock.time(0, steady: .zero)
        let ahead = 10_000 * hour
        #expect(clock.time(ahead, steady: .seconds(10)) == 10_000_000)
        #expect(clock.time(ahead + hour, steady: .seconds(3609)) == 3_609_000_000)
        #expect(clock.time(ahead + hour, steady: .seconds(3610)) == ahead + hour)
    }

    @Test("a clock that jumps ahead and comes back has done no harm")
    func jumpBack() {
        var clock = TrustedClock()
        _ = clock.time(0, steady: .zero)
        #expect(clock.time(10_000 * hour, steady: .seconds(10)) == 10_000_000)
        #expect(clock.time(20_000_000, steady: .seconds(20)) == 20_000_000)
        #expect(clock.time(10_000 * hour, steady: .seconds(4000)) == 4_000_000_000)
    }
}
