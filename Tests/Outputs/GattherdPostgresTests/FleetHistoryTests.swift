import GattherdModel
import TestKit
import Testing

@testable import GattherdPostgres

struct FleetSpanTests {
    private static let hour: Int64 = 3_600_000_000
    private static let minute: Int64 = 60_000_000

    @Test func `whole hours and minutes are read from their summaries, the rest from samples`() {
        let times = Self.hour - 90_000_000..<3 * Self.hour + 1
        #expect(
            FleetSpan.parts(of: times, step: Self.hour) == [
                FleetSpan(tier: .samples, times: Self.hour - 90_000_000..<Self.hour - Self.minute),
                FleetSpan(tier: .minutes, times: Self.hour - Self.minute..<Self.hour),
                FleetSpan(tier: .hours, times: Self.hour..<3 * Self.hour),
                FleetSpan(tier: .samples, times: 3 * Self.hour..<3 * Self.hour + 1),
            ]
        )
        #expect(FleetSpan.parts(of: times, step: 5 * Self.minute).map(\.tier) == [.samples, .minutes, .samples])
        #expect(FleetSpan.parts(of: times, step: 1_500_000).map(\.tier) == [.samples])
        #expect(FleetSpan.parts(of: .min ..< .max, step: Self.hour).map(\.tier) == [.hours])
        #expect(FleetSpan.parts(of: 5..<5, step: Self.hour).isEmpty)
        let before = FleetSpan.parts(of: -Self.hour - 1 ..< -1, step: Self.hour)
        #expect(before.first?.times == -Self.hour - 1 ..< -Self.hour)
    }
}

@Suite(.enabled(if: Centre.isAvailable, "PostgreSQL is missing; run: make test-servers"), .timeLimit(.minutes(3)))
struct FleetHistoryTests {
    private static func history(_ centre: Centre, _ query: FleetHistory.Query = .init()) -> FleetHistory {
        FleetHistory(centre.fleet, query)
    }

    private static func rows(_ history: FleetHistory) async throws -> [FleetHistory.Row] {
        var rows: [FleetHistory.Row] = []
        try await history.rows { row in
            rows.append(row)
            return true
        }
        return rows
    }

    private static func buckets(_ history: FleetHistory, _ step: Duration) async throws -> [FleetHistory.Bucket] {
        var buckets: [FleetHistory.Bucket] = []
        try await history.buckets(every: step) { bucket in
            buckets.append(bucket)
            return true
        }
        return buckets
    }

    @Test func `values have all their digits, whatever the default of the database`() async throws {
        let centre = try await Centre()
        let value = 0.1 + 0.2
        try await centre.sink(of: "attic").deliver([Entries.reading(1, (0, .real(value)))])
        _ = try await centre.rows("ALTER DATABASE fleet SET extra_float_digits = 0")
        // The setting is that of new connections.
        let history = Self.history(try Centre(server: centre.server))
        #expect(try await Self.rows(history).map(\.value) == [.real(value)])
        #expect(try await Self.buckets(history, .seconds(60)).map(\.max) == [value])
    }

    @Test func `samples of all gateways come in the order of their times, more than a page of them`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...3000), batch: 1000)
        try await centre.sink(of: "cellar").deliver(Entries.numbered(1...3000), batch: 1000)
        let rows = try await Self.rows(Self.history(centre))
        #expect(rows.count == 6000)
        #expect(rows.map(\.time) == rows.map(\.time).sorted())
        #expect(rows.prefix(2).map(\.gateway) == ["attic", "cellar"])
        let last = try #require(rows.last)
        #expect(last.seq == 3000 && last.value == .integer(3000))
        #expect(last.unit == "bpm" && last.source == "notify")
        var count = 0
        try await Self.history(centre).rows { _ in
            count += 1
            return count < 10
        }
        #expect(count == 10)
    }

    @Test func `a selection by device, metric and time has unchanged values`() async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver([
            Entries.reading(1, (0, .real(61.5)), (3, .text("it's on"))),
            Entries.reading(2, (0, .integer(.max))), Entries.reading(3, (0, .null)),
            Entries.reading(4, at: Entries.time.advanced(by: .seconds(1)), (0, .integer(1))),
        ])
        let until = Entries.time.advanced(by: .seconds(1))
        let query = FleetHistory.Query(device: "strap", metric: "bpm", since: Entries.time, until: until)
        #expect(
            try await Self.rows(Self.history(centre, query)).map(\.value) == [.real(61.5), .integer(.max), .null]
        )
        let mode = FleetHistory.Query(metric: "mode")
        #expect(try await Self.rows(Self.history(centre, mode)).map(\.value) == [.text("it's on")])
        let nothing = FleetHistory.Query(device: "x' OR '1' = '1")
        #expect(try await Self.rows(Self.history(centre, nothing)).isEmpty)
        #expect(try await Self.history(centre).devices() == ["strap"])
        #expect(try await Self.history(centre, query).metrics() == ["bpm", "mode"])
    }

    /// Delivers one number of each device, with the addresses of all of them.
    private static func deliver(_ devices: [(name: String, address: String)], to sink: PostgresSink) async throws {
        let levels = [MetricDescriptor(name: "level", unit: "%")]
        let streams = devices.map { device in
            StreamDefinition(device: device.name, profile: "test", stream: "battery", metrics: levels)
        }
        try await sink.deliver(streams.enumerated().map { Entries.reading(Int64($0 + 1), (0, .integer(1)), of: $1) })
    }

    @Test func `an address selects the device that had it last at each gateway`() async throws {
        let centre = try await Centre()
        let address = "C0:FF:EE:00:00:01"
        let gateways = [
            "attic": [(name: "old", address: address), (name: "tag", address: address)],
            "cellar": [(name: "sensor", address: address), (name: "tag", address: "C0:FF:EE:00:00:02")],
        ]
        for (gateway, devices) in gateways {
            let seen = devices.enumerated().map { number, device in
                let record = DeviceRecord(device: device.name, address: device.address, name: nil, profiles: [])
                return SeenDevice(record, first: Entries.time, last: Entries.time.advanced(by: .seconds(number)))
            }
            try await Self.deliver(devices, to: try await centre.sink(of: gateway, devices: seen))
        }
        let history = Self.history(centre, .init(address: address))
        #expect(try await Self.rows(history).map { "\($0.gateway)/\($0.device)" } == ["attic/tag", "cellar/sensor"])
        for step in [Duration.seconds(3600), .seconds(1)] {
            #expect(try await Self.buckets(history, step).map(\.device) == ["tag", "sensor"])
        }
        #expect(try await history.extent() != nil)
        #expect(try await history.streams() == ["battery"])
        #expect(try await history.metrics() == ["level"])
        #expect(try await history.knows(address: address))
        #expect(try await !history.knows(address: "C0:FF:EE:00:00:03"))
    }

    @Test func `streams with one metric name have rows of their own, and a query selects one`() async throws {
        let centre = try await Centre()
        let levels = [MetricDescriptor(name: "level", unit: "%")]
        let streams = ["battery", "vendor"].map {
            StreamDefinition(device: "strap", profile: "test", stream: $0, metrics: levels)
        }
        try await centre.sink(of: "attic").deliver(
            (1...6).map { Entries.reading($0, (0, .integer($0 % 2 == 0 ? 98 : 40)), of: streams[$0 % 2 == 0 ? 0 : 1]) }
        )
        for view in ["history_minutes", "history_hours"] {
            let rows = try await centre.rows("SELECT stream, n, min, mean, max FROM gattherd.\(view) ORDER BY 1")
            #expect(rows == [["battery", "3", "98", "98", "98"], ["vendor", "3", "40", "40", "40"]])
        }
        let latest = try await centre.rows("SELECT stream, value FROM gattherd.latest ORDER BY 1")
        #expect(latest == [["battery", "98"], ["vendor", "40"]])
        for step in [Duration.seconds(3600), .seconds(60), .seconds(1)] {
            let buckets = try await Self.buckets(Self.history(centre), step)
            #expect(buckets.map(\.stream) == ["battery", "vendor"] && buckets.map(\.mean) == [98, 40])
        }
        let vendor = Self.history(centre, .init(stream: "vendor", metric: "level"))
        #expect(try await Self.rows(vendor).map(\.value) == Array(repeating: .integer(40), count: 3))
        #expect(try await Self.rows(vendor).allSatisfy { $0.stream == "vendor" })
        #expect(try await Self.buckets(vendor, .seconds(60)).map(\.mean) == [40])
        #expect(try await vendor.streams() == ["battery", "vendor"])
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(7200), .seconds(60), .seconds(300), .milliseconds(700)])
    func `summaries are those of the samples in the range`(step: Duration) async throws {
        let centre = try await Centre()
        let sink = try await centre.sink(of: "attic")
        try await sink.deliver(Entries.numbered(1...5000, step: .milliseconds(4321)), batch: 1000)
        let since = Entries.time.advanced(by: .seconds(1000.123))
        let query = FleetHistory.Query(since: since, until: Entries.time.advanced(by: .seconds(19_000.7)))
        let found = try await Self.buckets(Self.history(centre, query), step)
        let length = Timestamp(microseconds: 0).advanced(by: step).microseconds
        var expected: [Int64: [Double]] = [:]
        for row in try await Self.rows(Self.history(centre, query)) {
            guard case .integer(let value) = row.value else { continue }
            expected[row.time.microseconds / length * length, default: []].append(Double(value))
        }
        #expect(found.map(\.time.microseconds) == expected.keys.sorted())
        for bucket in found {
            let values = expected[bucket.time.microseconds] ?? []
            #expect(bucket.n == values.count && bucket.min == values.min() && bucket.max == values.max())
            #expect(abs(bucket.mean - values.reduce(0, +) / Double(values.count)) < 1e-6)
        }
        let extent = try #require(try await Self.history(centre).extent())
        #expect(extent.contains(Entries.time) && extent.contains(since))
    }

    @Test func `the extent of a selection that begins within an hour is that of its numbers`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...10))
        let query = FleetHistory.Query(since: Entries.time)
        let extent = try #require(try await Self.history(centre, query).extent())
        #expect(extent.lowerBound == Entries.time.advanced(by: .milliseconds(10)))
        #expect(extent.upperBound == Entries.time.advanced(by: .milliseconds(100)))
        let later = FleetHistory.Query(since: Entries.time.advanced(by: .seconds(1)))
        #expect(try await Self.history(centre, later).extent() == nil)
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(60), .seconds(7)])
    func `numbers of any size have summaries`(step: Duration) async throws {
        let centre = try await Centre()
        let values = [Double.greatestFiniteMagnitude, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 0]
        let times = [0, 0, 7200, 7200].map { Entries.time.advanced(by: .seconds($0)) }
        let entries = zip(values, times).enumerated().map { index, entry in
            Entries.reading(Int64(index) + 1, at: entry.1, (0, .real(entry.0)))
        }
        try await centre.sink(of: "attic").deliver(entries)
        let buckets = try await Self.buckets(Self.history(centre), step)
        #expect(buckets.map(\.n) == [2, 2])
        #expect(buckets.map(\.max) == [.greatestFiniteMagnitude, .leastNonzeroMagnitude])
        // The sums are limited, so that no sum of sums overflows.
        #expect(buckets.map { $0.mean >= 5e297 } == [true, false])
    }

    @Test func `a centre that cannot be read is a failure, and the next query works`() async throws {
        let centre = try await Centre()
        try await centre.sink(of: "attic").deliver(Entries.numbered(1...10))
        _ = try await centre.rows("ALTER SCHEMA gattherd RENAME TO gone")
        await #expect(throws: FleetDatabase.Failure.self) { _ = try await Self.rows(Self.history(centre)) }
        _ = try await centre.rows("ALTER SCHEMA gone RENAME TO gattherd")
        #expect(try await Self.rows(Self.history(centre)).count == 10)
    }
}
