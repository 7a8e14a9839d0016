import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdPostgres

/// The view `latest`: the readings with the latest times, whatever arrived last.
@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct LatestViewTests {
    /// A time by the clock of this gateway and of the centre.
    private static func now(_ seconds: Double = 0) -> Timestamp {
        Timestamp(microseconds: WallClock.microseconds).advanced(by: .seconds(seconds))
    }

    private static func latest(_ centre: Centre) async throws -> [[String]] {
        try await centre.rows("SELECT gateway, seq, value FROM gattherd.latest WHERE metric <> 'rssi' ORDER BY 1, 2")
    }

    @Test func `a stored record that arrives later does not replace a newer reading`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let time = Self.now(-7200)
        try await sink.deliver([Entries.reading(1, at: time, (0, .integer(70)))])
        try await sink.deliver([
            Entries.reading(1, at: time, (0, .integer(70))),
            Entries.reading(2, at: time.advanced(by: .seconds(-3600)), (0, .integer(50))),
        ])
        #expect(try await Self.latest(centre) == [["attic", "1", "70"]])
        // In one batch with a newer reading.
        let later = time.advanced(by: .seconds(10))
        try await sink.deliver([
            Entries.reading(3, at: later, (0, .integer(71))),
            Entries.reading(4, at: time.advanced(by: .seconds(-1800)), (0, .integer(51))),
        ])
        #expect(try await Self.latest(centre) == [["attic", "3", "71"]])
        try await sink.deliver([Entries.reading(5, at: later, (0, .integer(72)))])
        #expect(try await Self.latest(centre) == [["attic", "5", "72"]], "of equal times, the last to arrive")
    }

    @Test func `after a clock was set back the readings that arrive are the latest`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        let year = 365 * 86_400.0
        try await sink.deliver([Entries.reading(1, at: Self.now(year), (0, .integer(1)))])
        #expect(try await Self.latest(centre) == [["attic", "1", "1"]])
        try await sink.deliver([Entries.reading(2, at: Self.now(-20), (0, .integer(2)))])
        #expect(try await Self.latest(centre) == [["attic", "2", "2"]])
        try await sink.deliver([
            Entries.reading(3, at: Self.now(year), (0, .integer(3))),
            Entries.reading(4, at: Self.now(-10), (0, .integer(4))),
        ])
        #expect(try await Self.latest(centre) == [["attic", "4", "4"]])
    }

    @Test(arguments: [
        // The clock was behind for the reading 2, ahead for the reading 1, or is moved into the future.
        (times: [-3600, -7200], wrong: Int64(2), shift: 7100, latest: "2"),
        (times: [-50, -60], wrong: 1, shift: -3600, latest: "2"),
        (times: [-60, -3600], wrong: 2, shift: 86_400, latest: "1"),
    ])
    func `a correction that moves a reading past another one changes the latest`(
        times: [Double],
        wrong: Int64,
        shift: Double,
        latest: String
    ) async throws {
        let centre = try await Centre()
        let correction = ClockCorrection(after: wrong - 1, through: wrong, shift: .seconds(shift))
        try await centre.sink(of: "attic").deliver([
            Entries.reading(1, at: Self.now(times[0]), (0, .integer(1))),
            Entries.reading(2, at: Self.now(times[1]), (0, .integer(2))),
            .correction(correction, seq: 3),
        ])
        #expect(try await Self.latest(centre) == [["attic", latest, latest]])
    }

    @Test func `a correction finds the newest reading of a series among copies of what another gateway heard`()
        async throws
    {
        let centre = try await Centre()
        let (wrong, right) = (Self.now(-50), Self.now(-60))
        let heard = [Entries.heard(1, at: wrong, 20), Entries.heard(2, at: right, 21)]
        try await centre.sink(of: "attic").deliver(heard)
        let correction = ClockCorrection(after: 0, through: 1, shift: .seconds(-3600))
        try await centre.sink(of: "cellar").deliver(heard + [.correction(correction, seq: 3)])
        let last = "SELECT metric, last_ts FROM gattherd.series WHERE gateway = 'cellar' ORDER BY 1"
        let expected = ["rssi", "temperature"].map { [$0, "\(right.microseconds)"] }
        #expect(try await centre.rows(last) == expected)
    }

    @Test func `a correction moves the newest reading of a series that has only copies`() async throws {
        let centre = try await Centre()
        let time = Self.now(-60)
        // Without a signal strength, a copy leaves no sample of its gateway.
        let sample = Sample(metric: 0, value: .real(20))
        let reading = JournalReading(seq: 1, stream: Entries.tag, time: time, source: .advert, samples: [sample])
        try await centre.sink(of: "attic").deliver([.reading(reading)])
        let correction = ClockCorrection(after: 0, through: 1, shift: .seconds(-10))
        try await centre.sink(of: "cellar").deliver([.reading(reading), .correction(correction, seq: 2)])
        let last = "SELECT last_ts FROM gattherd.series WHERE gateway = 'cellar'"
        #expect(try await centre.value(last) == "\(time.advanced(by: .seconds(-10)).microseconds)")
    }

    @Test func `series of one metric have one latest reading, whatever their sources`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver([
            Entries.reading(1, at: Self.now(-60), (0, .integer(1))),
            Entries.reading(2, at: Self.now(-3600), (0, .integer(2)), source: .read),
        ])
        #expect(try await Self.latest(centre) == [["attic", "1", "1"]])
        try await sink.deliver([Entries.reading(3, at: Self.now(86_400), (0, .integer(3)), source: .indicate)])
        #expect(try await Self.latest(centre) == [["attic", "1", "1"]], "its time is of the future")
    }

    @Test func `a clock that is ahead by minutes does not hide the newer reading of another gateway`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver([Entries.heard(1, at: Self.now(-60 + 300), 20)])
        try await centre.sink(of: "cellar").deliver([Entries.heard(1, at: Self.now(-30), 21)])
        let offset = "UPDATE gattherd.gateway SET clock_offset = 300 WHERE name = 'attic'"
        _ = try await centre.rows(offset)
        #expect(try await Self.latest(centre) == [["cellar", "1", "21"]])
        try await centre.sink(of: "attic").deliver([Entries.heard(2, at: Self.now(-20 + 300), 22)])
        _ = try await centre.rows(offset)
        #expect(try await Self.latest(centre) == [["attic", "2", "22"]])
    }
}
